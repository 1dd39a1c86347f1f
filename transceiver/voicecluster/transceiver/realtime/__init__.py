"""The OpenAI Realtime API's state of one call: client events in, server events and paced audio out."""
