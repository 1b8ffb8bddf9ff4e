"""Models, health, metrics, the page, the description, and the key."""

import base64
import hashlib
import re
from typing import Any

import pytest
from serving import CONTEXT, Serving


def test_models(serving: Serving) -> None:
    body = serving.request("GET", "/v1/models").json()
    assert body["object"] == "list"
    assert [model["id"] for model in body["data"]] == ["small", "tiny"]
    one = serving.request("GET", "/v1/models/small").json()
    assert one == {
        "id": "small",
        "object": "model",
        "created": 5,
        "owned_by": "helios",
        "max_model_len": CONTEXT,
        "numerics": "a16",
    }


def test_health(serving: Serving) -> None:
    health = serving.request("GET", "/health").json()
    assert health["status"] == "ok"
    assert set(health["memory_bytes"]) == {"budget", "planned", "committed", "measured"}
    serving.engine.healthy = False
    failed = serving.request("GET", "/health")
    assert (failed.status_code, failed.json()["status"]) == (503, "failed")


def test_plan(serving: Serving) -> None:
    report = serving.request("GET", "/v1/helios/plan").json()
    assert {"phases", "memory", "plan", "failure"} <= set(report)


def test_metrics(serving: Serving) -> None:
    serving.chat()
    serving.post("/v1/chat/completions", {})
    text = serving.request("GET", "/metrics").text
    assert 'helios_requests_total{endpoint="chat",outcome="completed"} 1.0' in text
    assert 'helios_requests_total{endpoint="chat",outcome="refused"} 1.0' in text
    assert "helios_response_output_tokens_total" in text
    assert "helios_time_to_first_token_seconds_count 1.0" in text
    assert "helios_requests_active 0.0" in text
    assert "helios_steps_total 7.0" in text
    assert "helios_slots 4.0" in text
    labels = set(re.findall(r'(\w+)="', text))
    assert labels <= {"endpoint", "outcome", "le"}


def test_two_servers_do_not_share_metrics(serving: Serving, make_serving: Any) -> None:
    serving.chat()
    assert 'outcome="' not in make_serving().request("GET", "/metrics").text


def test_page(serving: Serving) -> None:
    response = serving.request("GET", "/")
    assert response.headers["content-type"].startswith("text/html")
    script = re.search(r"<script>(.*?)</script>", response.text, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"'sha256-{digest}'" in response.headers["content-security-policy"]
    outside = re.findall(r"(?:src|href)=[\"']?(?!data:)([^\"' >]+)", response.text)
    assert outside == []


def test_description(serving: Serving) -> None:
    document = serving.request("GET", "/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    routes = {route.path.replace(":path", "") for route in serving.app.routes}  # type: ignore[attr-defined]
    assert set(document["paths"]) <= routes
    schemas = document["components"]["schemas"]
    assert set(schemas["ChatRequest"]["required"]) == {"model", "messages"}
    assert set(schemas["CompletionRequest"]["required"]) == {"model", "prompt"}
    references = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert references <= set(schemas)


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": "Bearer wrong"}, {"authorization": "secret"}]
)
def test_a_key_guards_the_api(make_serving: Any, headers: dict[str, str]) -> None:
    serving = make_serving(api_key="secret")
    for path in ("/v1/models", "/v1/chat/completions", "/v1/nothing"):
        response = serving.request("GET", path, headers=headers)
        assert response.status_code == 401
        assert response.json()["error"]["code"] == "invalid_api_key"
    right = {"authorization": "Bearer secret"}
    assert serving.request("GET", "/v1/models", headers=right).status_code == 200
    for path in ("/", "/health", "/metrics"):
        assert serving.request("GET", path).status_code == 200
