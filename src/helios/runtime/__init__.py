"""Devices, and the model that is loaded on one."""
