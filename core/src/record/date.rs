//! Civil dates of 1970 to 2554, the range of `u64` nanoseconds, in UTC without leap seconds.

use core::ops::RangeInclusive;

const FIRST_YEAR: u64 = 1970;
const LAST_YEAR: u64 = 2554;
const DAY_MS: u64 = 86_400_000;

/// A moment as the record writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Civil {
    pub(super) year: u64,
    pub(super) month: u64,
    pub(super) day: u64,
    pub(super) hour: u64,
    pub(super) minute: u64,
    pub(super) second: u64,
    pub(super) milli: u64,
}

/// The date of a millisecond since 1970; none after the year 2554.
pub(super) fn civil(at_ms: u64) -> Option<Civil> {
    let (days, in_day) = (at_ms / DAY_MS, at_ms % DAY_MS);
    let (year, days) = find(FIRST_YEAR..=LAST_YEAR, days_in_year, days)?;
    let (month, days) = find(1..=12, |month| days_in_month(year, month), days)?;
    Some(Civil {
        year,
        month,
        day: days.checked_add(1)?,
        hour: in_day / 3_600_000,
        minute: in_day / 60_000 % 60,
        second: in_day / 1_000 % 60,
        milli: in_day % 1_000,
    })
}

/// The millisecond since 1970 of a date that exists; none for 30 February, second 60, 1969.
pub(super) fn millis(date: Civil) -> Option<u64> {
    let exists = (FIRST_YEAR..=LAST_YEAR).contains(&date.year)
        && (1..=12).contains(&date.month)
        && (1..=days_in_month(date.year, date.month)).contains(&date.day)
        && date.hour < 24
        && date.minute < 60
        && date.second < 60
        && date.milli < 1_000;
    if !exists {
        return None;
    }
    let years = (FIRST_YEAR..date.year).map(days_in_year);
    let months = (1..date.month).map(|month| days_in_month(date.year, month));
    let days = years.chain(months).try_fold(date.day - 1, u64::checked_add)?;
    let in_day = ((date.hour * 60 + date.minute) * 60 + date.second) * 1_000 + date.milli;
    days.checked_mul(DAY_MS)?.checked_add(in_day)
}

/// Walks through periods, one after another: the one that `days` ends in, and the days left for it.
fn find(
    periods: RangeInclusive<u64>,
    length: impl Fn(u64) -> u64,
    mut days: u64,
) -> Option<(u64, u64)> {
    for period in periods {
        let Some(later) = days.checked_sub(length(period)) else { return Some((period, days)) };
        days = later;
    }
    None
}

fn days_in_year(year: u64) -> u64 {
    if is_leap(year) { 366 } else { 365 }
}

fn days_in_month(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn is_leap(year: u64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2554-12-31T23:59:59.999Z.
    const LAST_MS: u64 = 18_460_828_799_999;

    #[test]
    fn every_day_is_its_own_inverse() {
        let mut at_ms = 0;
        while at_ms <= LAST_MS {
            assert_eq!(millis(civil(at_ms).unwrap()), Some(at_ms));
            at_ms += DAY_MS;
        }
        assert_eq!(millis(civil(LAST_MS).unwrap()), Some(LAST_MS));
        assert_eq!(civil(LAST_MS + 1), None);
        assert_eq!(civil(LAST_MS).unwrap().year, 2554);
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        let day =
            |year, month, day| Civil { year, month, day, hour: 0, minute: 0, second: 0, milli: 0 };
        assert_eq!(millis(day(2000, 2, 29)), Some(951_782_400_000));
        assert_eq!(millis(day(2100, 2, 29)), None);
        assert_eq!(millis(day(2026, 4, 31)), None);
        assert_eq!(millis(day(2026, 0, 1)), None);
        assert_eq!(millis(day(2026, 13, 1)), None);
        assert_eq!(millis(day(2026, 1, 0)), None);
        assert_eq!(millis(day(1969, 12, 31)), None);
        assert_eq!(millis(day(2555, 1, 1)), None);
    }
}
