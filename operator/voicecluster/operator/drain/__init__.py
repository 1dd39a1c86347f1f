"""Transceivers leave one at a time and without cutting a call: `decide` says who, `admin` asks them."""
