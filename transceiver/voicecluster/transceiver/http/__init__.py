"""The public HTTP API (OpenAI's Realtime WebRTC API), the page, and the internal port that siblings use."""
