//! Where an api listens that has a port of its own beside the one that all share.

use std::net::SocketAddr;

use super::values::address;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ApiListen {
    /// At the usual port of its protocol, beside the first address of `--listen`. One that is taken costs a warning.
    #[default]
    Usual,
    /// Here and nowhere else.
    At(Vec<SocketAddr>),
    Off,
}

impl ApiListen {
    /// `off`, or addresses.
    pub fn parse(texts: &[String]) -> Result<ApiListen, String> {
        match texts {
            [] => Err("no address given; allowed: IP:PORT, or off".into()),
            [off] if off == "off" => Ok(ApiListen::Off),
            texts => {
                let addresses: Result<_, String> = texts.iter().map(|text| address(text)).collect();
                addresses.map(ApiListen::At).map_err(|problem| format!("{problem}, or off"))
            }
        }
    }

    /// The addresses, where `listen` are those of the port that all share. Whoever lets the system choose that one,
    /// as tests do, has it choose this one too.
    pub fn addresses(&self, usual_port: u16, listen: &[SocketAddr]) -> Vec<SocketAddr> {
        match self {
            ApiListen::Off => Vec::new(),
            ApiListen::At(addresses) => addresses.clone(),
            ApiListen::Usual => {
                let beside = |first: &SocketAddr| {
                    SocketAddr::new(first.ip(), if first.port() == 0 { 0 } else { usual_port })
                };
                listen.first().map(beside).into_iter().collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_of_its_own_is_beside_the_shared_one_unless_it_is_named() {
        let words = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let shown = |listen: &ApiListen, shared: &str| {
            let addresses = listen.addresses(8902, &[shared.parse().expect("an address")]);
            addresses.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",")
        };
        let usual = ApiListen::default();
        assert_eq!(shown(&usual, "127.0.0.1:8081"), "127.0.0.1:8902");
        assert_eq!(shown(&usual, "[::1]:4711"), "[::1]:8902");
        assert_eq!(shown(&usual, "127.0.0.1:0"), "127.0.0.1:0");
        for (text, expected) in [
            ("off", ""),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("127.0.0.1:1,127.0.0.1:2", "127.0.0.1:1,127.0.0.1:2"),
        ] {
            let listen = ApiListen::parse(&words(text)).expect("understood");
            assert_eq!(shown(&listen, "127.0.0.1:8081"), expected);
        }
        for wrong in ["on", "off,127.0.0.1:1", "127.0.0.1:port"] {
            let problem = ApiListen::parse(&words(wrong)).expect_err(wrong);
            assert!(problem.contains("or off"), "{problem}");
        }
    }
}
