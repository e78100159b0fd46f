//! Means, extremes and deviations, one value after the other.

use crate::context::Context;
use crate::decimal;
use crate::expression::number::Sum;
use crate::value::Bson;
use crate::value_ref::ValueRef;

/// The mean of a sum; null where nothing was added.
pub fn mean(sum: &Sum) -> Bson {
    match sum.count() {
        0 => Bson::Null,
        count if sum.is_decimal() => {
            Bson::Decimal(decimal::divide(sum.to_decimal(), decimal::of_i64(count as i64)))
        }
        count => Bson::Double(sum.to_f64() / count as f64),
    }
}

/// The least or the greatest value so far; null and missing do not count.
#[derive(Clone, Debug)]
pub struct Extreme {
    greatest: bool,
    best: Option<Bson>,
}

impl Extreme {
    pub fn new(greatest: bool) -> Extreme {
        Extreme { greatest, best: None }
    }

    pub fn add(&mut self, value: &Bson, context: &Context) {
        if matches!(value, Bson::Null | Bson::Undefined) {
            return;
        }
        let better = self.best.as_ref().is_none_or(|best| {
            let order = crate::order::compare(
                ValueRef::Owned(value),
                ValueRef::Owned(best),
                context.collation.as_deref(),
            );
            if self.greatest { order.is_gt() } else { order.is_lt() }
        });
        if better {
            self.best = Some(value.clone());
        }
    }

    pub fn finish(&self) -> Bson {
        self.best.clone().unwrap_or(Bson::Null)
    }

    pub fn best(&self) -> Option<&Bson> {
        self.best.as_ref()
    }
}

/// Welford's method: exact enough also where the mean is large against the deviation.
#[derive(Clone, Debug, Default)]
pub struct Deviation {
    count: u64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let delta = value - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (value - self.mean);
    }

    pub fn finish(&self, sample: bool) -> Bson {
        let divisor = if sample { self.count.saturating_sub(1) } else { self.count };
        if divisor == 0 {
            return Bson::Null;
        }
        Bson::Double((self.squares / divisor as f64).sqrt())
    }
}

/// How two quantities vary together.
#[derive(Clone, Debug, Default)]
pub struct Covariance {
    count: u64,
    mean_x: f64,
    mean_y: f64,
    product: f64,
}

impl Covariance {
    pub fn add(&mut self, x: f64, y: f64) {
        self.count += 1;
        let delta = x - self.mean_x;
        self.mean_x += delta / self.count as f64;
        self.mean_y += (y - self.mean_y) / self.count as f64;
        self.product += delta * (y - self.mean_y);
    }

    pub fn finish(&self, sample: bool) -> Bson {
        let divisor = if sample { self.count.saturating_sub(1) } else { self.count };
        if divisor == 0 { Bson::Null } else { Bson::Double(self.product / divisor as f64) }
    }
}
