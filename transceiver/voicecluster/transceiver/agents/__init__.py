"""Agents: what a caller talks to. Frames in, events out; no clock, no task, no network of their own."""
