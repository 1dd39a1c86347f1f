"""What is reported: conditions and counts out of what was observed and decided. Pure; `write` alone has a clock."""
