"""Calibration on the user's data, and plans within what the user bears."""
