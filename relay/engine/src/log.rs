//! The engine's log: one JSON object a line on standard error. Nothing is ever logged for a single packet.

#![forbid(unsafe_code)]

use std::fmt::Display;
use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

/// A state change that somebody running the relay could notice.
pub fn info(message: &str, fields: &[(&str, &dyn Display)]) {
    write("INFO", message, fields);
}

/// Something that may need somebody.
pub fn warn(message: &str, fields: &[(&str, &dyn Display)]) {
    write("WARNING", message, fields);
}

fn write(level: &str, message: &str, fields: &[(&str, &dyn Display)]) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut line = Map::new();
    line.insert(
        "ts".into(),
        timestamp(now.as_secs(), now.subsec_millis()).into(),
    );
    line.insert("level".into(), level.into());
    line.insert("logger".into(), "voicecluster.relay.engine".into());
    line.insert("message".into(), message.into());
    for (name, value) in fields {
        line.insert((*name).into(), value.to_string().into());
    }
    let mut text = Value::Object(line).to_string();
    text.push('\n');
    // A closed standard error is nothing to stop for.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// RFC 3339 in UTC. The date is counted in years that begin in March, which puts the leap day last.
fn timestamp(seconds: u64, millis: u32) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}+00:00")
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn dates_are_right_around_a_leap_day() {
        assert_eq!(timestamp(951_782_399, 7), "2000-02-28T23:59:59.007+00:00");
        assert_eq!(timestamp(951_782_400, 0), "2000-02-29T00:00:00.000+00:00");
        assert_eq!(
            timestamp(1_798_761_599, 999),
            "2026-12-31T23:59:59.999+00:00"
        );
    }
}
