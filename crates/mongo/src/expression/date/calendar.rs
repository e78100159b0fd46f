//! Days to years, months and days, and back; weeks.

pub const DAY_MS: i64 = 86_400_000;

/// A date and time of day, without a time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
    pub year: i64,
    /// 1 to 12.
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub ms: i64,
}

impl Civil {
    /// Of milliseconds since 1970.
    pub fn of(ms: i64) -> Civil {
        let (days, rest) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
        let (year, month, day) = of_days(days);
        Civil {
            year,
            month,
            day,
            hour: rest / 3_600_000,
            minute: rest / 60_000 % 60,
            second: rest / 1000 % 60,
            ms: rest % 1000,
        }
    }

    /// Milliseconds since 1970. Every part may lie outside of its range and carries over; `None` beyond 64 bits.
    pub fn to_ms(self) -> Option<i64> {
        let wide = |value: i64| i128::from(value);
        let time =
            ((wide(self.hour) * 60 + wide(self.minute)) * 60 + wide(self.second)) * 1000 + wide(self.ms);
        let months = wide(self.year) * 12 + wide(self.month) - 1;
        let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
        let year = i64::try_from(year).ok().filter(|year| year.abs() < 400_000_000)?;
        let days = wide(days_of(year, month as i64, 1)) + wide(self.day) - 1;
        i64::try_from(days * wide(DAY_MS) + time).ok()
    }

    pub fn days(self) -> i64 {
        days_of(self.year, self.month, self.day)
    }

    /// 1 for the first of January.
    pub fn day_of_year(self) -> i64 {
        self.days() - days_of(self.year, 1, 1) + 1
    }

    /// 0 for Sunday.
    pub fn weekday(self) -> i64 {
        weekday(self.days())
    }

    /// 1 for Monday, 7 for Sunday.
    pub fn iso_weekday(self) -> i64 {
        (self.weekday() + 6) % 7 + 1
    }

    /// Weeks that begin on Sunday; the days before the first one are week 0.
    pub fn week(self) -> i64 {
        (self.day_of_year() + 6 - self.weekday()) / 7
    }

    /// Year and week of ISO 8601: the week with the year's first Thursday is week 1.
    pub fn iso_week(self) -> (i64, i64) {
        let thursday = self.days() - (self.iso_weekday() - 4);
        let (year, ..) = of_days(thursday);
        (year, (thursday - days_of(year, 1, 1)) / 7 + 1)
    }
}

/// 0 for Sunday.
pub fn weekday(days: i64) -> i64 {
    (days + 4).rem_euclid(7)
}

/// Days since 1970 of a date of the proleptic calendar.
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

fn of_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let day_of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

pub fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970 of the Monday of week 1 of an ISO year.
pub fn iso_year_start(year: i64) -> i64 {
    let fourth = days_of(year, 1, 4);
    fourth - (weekday(fourth) + 6) % 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_eight_centuries_is_itself() {
        let mut days = days_of(1600, 1, 1);
        for year in 1600..2400 {
            for month in 1..=12 {
                for day in 1..=days_in_month(year, month) {
                    assert_eq!((days_of(year, month, day), of_days(days)), (days, (year, month, day)));
                    days += 1;
                }
            }
        }
    }

    #[test]
    fn weeks_follow_iso_8601() {
        for (ms, year, week, day) in [
            (1_609_459_200_000, 2020, 53, 5),
            (1_735_516_800_000, 2025, 1, 1),
            (1_356_912_000_000, 2013, 1, 1),
        ] {
            let civil = Civil::of(ms);
            assert_eq!((civil.iso_week(), civil.iso_weekday()), ((year, week), day), "{civil:?}");
        }
    }
}
