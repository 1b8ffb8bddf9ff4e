// Elementary functions. One routine serves every lane and every tail, so that a number does not
// depend on where in a row it stands.

constexpr float kLowest = -88.029692f, kHighest = 88.3762626f;  // where powers of two end

// exp(x) for x between kLowest and kHighest, to about one unit in the last place; 0 at kLowest.
HK vf exp_inside(vf x) {
  // Beyond 2^23 the units are the last bits: those of `t` are the power of two, as an exponent.
  const vf t = fma(x, set(1.44269504088896341f), set(12582912.0f + 127.0f));
  const vf n = sub(t, set(12582912.0f + 127.0f));
  vf r = fma(n, set(-0.693359375f), x);
  r = fma(n, set(2.12194440e-4f), r);
  vf p = set(1.38145406e-3f);
  p = fma(p, r, set(8.36874545e-3f));
  p = fma(p, r, set(4.16683890e-2f));
  p = fma(p, r, set(1.66665211e-1f));
  p = fma(p, r, set(4.99999940e-1f));
  p = fma(p, r, set(1.0f));
  p = fma(p, r, set(1.0f));
  return mul(p, as_float(shift_left<23>(as_int(t))));
}

// exp(x) for x <= 0; 0 where that is no normal number.
HK vf exp_falling(vf x) { return exp_inside(vmax(set(kLowest), x)); }

// The same to 2^-13, for what is rounded to bfloat16: the cubic nearest to 2^f where |f| <= 1/2.
HK vf coarse_exp_falling(vf x) {
  x = vmax(set(kLowest), x);
  const vf t = fma(x, set(1.44269504088896341f), set(12582912.0f + 127.0f));
  const vf f = fma(x, set(1.44269504088896341f), sub(set(12582912.0f + 127.0f), t));
  vf p = fma(f, set(0.0551716685f), set(0.242611125f));
  p = fma(p, f, set(0.693260968f));
  p = fma(p, f, set(0.999928057f));
  return mul(p, as_float(shift_left<23>(as_int(t))));
}

// exp(x) for any x; infinite above 88.3.
HK vf vexp(vf x) {
  const vf e = exp_falling(vmin(x, set(kHighest)));
  return select(less(set(kHighest), x), set(__builtin_inff()), e);
}

// tanh(x): an odd polynomial where 1 - 2 / (exp(2x) + 1) would cancel.
HK vf vtanh(vf x) {
  const vf a = vabs(x);
  const vf z = mul(x, x);
  vf p = set(-5.70498872745e-3f);
  p = fma(p, z, set(2.06390887954e-2f));
  p = fma(p, z, set(-5.37397155531e-2f));
  p = fma(p, z, set(1.33314422036e-1f));
  p = fma(p, z, set(-3.33332819422e-1f));
  const vf small = fma(mul(p, z), x, x);
  const vf e = vexp(mul(a, set(2.0f)));
  const vf large = sub(set(1.0f), div(set(2.0f), add(e, set(1.0f))));
  const vf signed_large = select(less(x, zero()), sub(zero(), large), large);
  return select(less(a, set(0.625f)), small, signed_large);
}

// erfc(x) for x >= 0 with a relative error below 1.2e-7 (Chebyshev fit, Press et al.).
HK vf verfc(vf x) {
  const vf t = div(set(1.0f), fma(x, set(0.5f), set(1.0f)));
  vf p = set(0.17087277f);
  p = fma(p, t, set(-0.82215223f));
  p = fma(p, t, set(1.48851587f));
  p = fma(p, t, set(-1.13520398f));
  p = fma(p, t, set(0.27886807f));
  p = fma(p, t, set(-0.18628806f));
  p = fma(p, t, set(0.09678418f));
  p = fma(p, t, set(0.37409196f));
  p = fma(p, t, set(1.00002368f));
  p = fma(p, t, set(-1.26551223f));
  return mul(t, vexp(sub(p, mul(x, x))));
}

HK vf vsilu(vf x) { return div(x, add(set(1.0f), vexp(sub(zero(), x)))); }

HK vf vgelu(vf x) {
  const vf tail = mul(set(0.5f), verfc(mul(vabs(x), set(0.70710678118654752f))));
  return mul(x, select(less(x, zero()), tail, sub(set(1.0f), tail)));
}

// x / (1 + exp(-2u)) is 0.5 x (1 + tanh(u)) without the cancellation for negative u.
HK vf vgelu_tanh(vf x) {
  const vf cubic = fma(mul(set(0.044715f), mul(x, x)), x, x);
  const vf u = mul(set(0.79788456080286536f), cubic);
  return div(x, add(set(1.0f), vexp(mul(set(-2.0f), u))));
}

// Calls body(value loader offset, lanes) over n elements, the last call with fewer lanes.
template <class Body>
HK void for_vectors(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + W <= n; i += W) body(i, W);
  if (i < n) body(i, static_cast<int>(n - i));
}

HK vf load_some(const float* p, int n) { return n == W ? load(p) : load_n(p, n); }
HK void store_some(float* p, vf v, int n) {
  if (n == W)
    store(p, v);
  else
    store_n(p, v, n);
}
