//! The items of a workload: made from their number, never kept, and how numbers are chosen.

use std::fmt::Write as _;

/// splitmix64: small, seeded, good enough to pick items.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Which item is asked for next.
#[derive(Debug, Clone)]
pub enum Chooser {
    Uniform {
        items: u64,
    },
    /// The method of Gray et al. (SIGMOD 1994), with the exponent that benchmarks use, scattered over the numbers.
    Zipf {
        items: u64,
        alpha: f64,
        zeta: f64,
        eta: f64,
    },
}

const THETA: f64 = 0.99;

impl Chooser {
    pub fn new(items: u64, zipf: bool) -> Chooser {
        if !zipf || items < 2 {
            return Chooser::Uniform { items };
        }
        let sum = |n: u64| (1..=n).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
        let zeta = sum(items);
        let eta = (1.0 - (2.0 / items as f64).powf(1.0 - THETA)) / (1.0 - sum(2) / zeta);
        Chooser::Zipf { items, alpha: 1.0 / (1.0 - THETA), zeta, eta }
    }

    pub fn next(&self, random: &mut Random) -> u64 {
        match *self {
            Chooser::Uniform { items } => random.next_u64() % items,
            Chooser::Zipf { items, alpha, zeta, eta } => {
                let unit = random.unit();
                let rank = match unit * zeta {
                    scaled if scaled < 1.0 => 0,
                    scaled if scaled < 1.0 + 0.5f64.powf(THETA) => 1,
                    _ => (items as f64 * (eta * unit - eta + 1.0).powf(alpha)) as u64,
                };
                mix(rank.min(items - 1)) % items
            }
        }
    }
}

/// The shape of the items.
#[derive(Debug, Clone)]
pub struct Shape {
    pub size_bytes: usize,
    pub partitions: u64,
}

impl Shape {
    pub fn id(number: u64) -> String {
        format!("item-{number:09}")
    }

    pub fn partition(&self, number: u64) -> String {
        format!("partition-{:06}", number % self.partitions)
    }

    pub fn city(number: u64) -> &'static str {
        Values::of(number).city
    }

    /// JSON of about the wanted size: some members to filter by, the rest filler that does not compress to nothing.
    pub fn document(&self, id: &str, number: u64, revision: u64) -> String {
        let Values { city, price, tags, street, zip } = Values::of(number);
        let head = format!(
            r#"{{"id":"{id}","pk":"{}","n":{number},"rev":{revision},"city":"{city}","price":{price},"tags":["{}","{}"],"address":{{"street":"{street}","zip":"{zip}"}},"text":""#,
            self.partition(number),
            tags[0],
            tags[1],
        );
        self.filled(head, number, revision)
    }

    /// The same as an entity of a table, which holds nothing but values.
    pub fn entity(&self, row_key: &str, number: u64, revision: u64) -> String {
        let Values { city, price, tags, street, zip } = Values::of(number);
        let head = format!(
            r#"{{"PartitionKey":"{}","RowKey":"{row_key}","n":{number},"rev":{revision},"city":"{city}","price":{price},"tag1":"{}","tag2":"{}","street":"{street}","zip":"{zip}","text":""#,
            self.partition(number),
            tags[0],
            tags[1],
        );
        self.filled(head, number, revision)
    }

    fn filled(&self, head: String, number: u64, revision: u64) -> String {
        let mut text = head;
        let least = text.len();
        let mut filler = Random::new(number ^ revision << 32);
        while text.len() + 2 < self.size_bytes {
            let _ = write!(text, "{:x} ", filler.next_u64() >> 24);
        }
        text.truncate(text.len().min(self.size_bytes.saturating_sub(2)).max(least));
        text.push_str("\"}");
        text
    }
}

/// What the members of an item hold that do not change.
struct Values {
    city: &'static str,
    price: String,
    tags: [String; 2],
    street: String,
    zip: String,
}

impl Values {
    fn of(number: u64) -> Values {
        const CITIES: [&str; 8] = ["Ulm", "Oslo", "Lima", "Pune", "Cork", "Kyiv", "Bonn", "Quito"];
        Values {
            city: CITIES[(mix(number) % 8) as usize],
            price: format!("{}.{:02}", number % 1000, number % 100),
            tags: [format!("t{}", number % 7), format!("t{}", number % 11)],
            street: format!("Street {}", number % 500),
            zip: format!("{:05}", number % 100_000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_json_of_the_wanted_size() {
        for size_bytes in [1, 200, 1024, 100_000] {
            let shape = Shape { size_bytes, partitions: 10 };
            let text = shape.document(&Shape::id(7), 7, 3);
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!((value["id"].as_str(), value["rev"].as_u64()), (Some("item-000000007"), Some(3)));
            assert!(size_bytes < 300 || text.len() == size_bytes, "{size_bytes}: {}", text.len());
            let text = shape.entity(&Shape::id(7), 7, 3);
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!((value["RowKey"].as_str(), value["rev"].as_u64()), (Some("item-000000007"), Some(3)));
        }
    }

    #[test]
    fn choices_stay_within_the_items_and_zipf_has_favourites() {
        let mut random = Random::new(1);
        for zipf in [false, true] {
            let chooser = Chooser::new(1000, zipf);
            let mut counts = vec![0u32; 1000];
            for _ in 0..100_000 {
                counts[chooser.next(&mut random) as usize] += 1;
            }
            let hottest = *counts.iter().max().unwrap();
            assert_eq!(hottest > 5_000, zipf, "{hottest}");
        }
    }
}
