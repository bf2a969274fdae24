//! Taps: ports whose frames are captured, named `HOST`, `SWITCH:PORT` or `SWITCH:NEIGHBOUR`. A host or a neighbour may be an endpoint
//! of a server, such as `s3g5`.

use finding::suggestion;
use model::{Fabric, LinkId, NodeId, PortIndex};

/// A port whose link is captured in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tap {
    /// Name of the port, as the user wrote it.
    pub name: String,
    /// Link that the port sends into.
    pub link: LinkId,
}

impl Tap {
    /// Finds the port that `text` names.
    ///
    /// # Errors
    /// If there is no such port; the message has the nearest right name.
    pub fn find(fabric: &Fabric, text: &str) -> Result<Self, String> {
        let tap = |node, port| Tap { name: text.to_owned(), link: fabric.link(node, port) };
        if let Some(node) = fabric.find(text) {
            return match fabric.ports(node).len() {
                1 => Ok(tap(node, PortIndex(0))),
                0 => Err(format!("`{text}` has no links")),
                ports => {
                    let (most, neighbour) = (ports - 1, fabric.name(fabric.ports(node)[0].to));
                    Err(format!(
                        "`{text}` has {ports} ports; choose one by its number, {text}:0 to {text}:{most}, or by its \
                         neighbour, such as {text}:{neighbour}"
                    ))
                }
            };
        }
        if let Some(host) = fabric.find_host(text) {
            return Ok(Tap { name: text.to_owned(), link: LinkId(host.0) });
        }
        let Some((name, port)) = text.rsplit_once(':') else {
            return Err(unknown(fabric, text));
        };
        let Some(node) = fabric.find(name) else {
            return Err(unknown(fabric, name));
        };
        let ports = fabric.ports(node);
        if let Some(host) = fabric.find_host(port).filter(|_| fabric.find(port).is_none()) {
            let link = fabric.reverse(LinkId(host.0));
            if fabric.links()[link.index()].from == node {
                return Ok(Tap { name: text.to_owned(), link });
            }
        }
        // The name of a neighbour comes before a port number: the nodes of a fabric may be named 0, 1, 2, ...
        let to: Vec<_> = ports.iter().filter(|link| fabric.name(link.to) == port).collect();
        match (&to[..], port.parse::<usize>()) {
            ([link], _) => Ok(tap(node, link.port)),
            ([_, _, ..], _) => {
                let which: Vec<_> = to.iter().map(|link| format!("{name}:{}", link.port)).collect();
                let count = to.len();
                Err(format!(
                    "{count} links lead from `{name}` to `{port}`; choose one of {}",
                    which.join(", ")
                ))
            }
            ([], Ok(number)) => match ports.get(number) {
                Some(link) => Ok(tap(node, link.port)),
                None => Err(format!("`{name}` has no port {number}; its ports are 0 to {}", ports.len() - 1)),
            },
            ([], Err(_)) => {
                let mut names: Vec<_> = ports.iter().map(|link| fabric.name(link.to)).collect();
                names.dedup();
                let hint = suggestion(port, &names);
                Err(format!("no link of `{name}` leads to `{port}`; {hint}"))
            }
        }
    }

    /// The name with only those characters that a file name may have.
    pub fn stem(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
        self.name.chars().map(plain).collect()
    }
}

/// Finds the ports that `names` name.
///
/// # Errors
/// The index of a name that has no port, or that means the same port or the same file as an earlier name.
pub fn find_all(fabric: &Fabric, names: &[String]) -> Result<Vec<Tap>, (usize, String)> {
    let mut taps: Vec<Tap> = Vec::new();
    for (i, name) in names.iter().enumerate() {
        let tap = Tap::find(fabric, name).map_err(|text| (i, text))?;
        if let Some(other) = taps.iter().find(|other| other.link == tap.link || other.stem() == tap.stem()) {
            let text = match other.link == tap.link {
                true => format!("`{}` and `{name}` are the same port", other.name),
                false => format!("`{}` and `{name}` would be written to the same file", other.name),
            };
            return Err((i, text));
        }
        taps.push(tap);
    }
    Ok(taps)
}

/// The message for a name that no node has, with the nearest name.
fn unknown(fabric: &Fabric, wrong: &str) -> String {
    let names: Vec<_> = (0..fabric.nodes()).map(|i| fabric.name(NodeId(i as u32))).collect();
    format!("there is no host or switch `{wrong}`; {}", suggestion(wrong, &names))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{FabricBuilder, Probability, Rate, Time};

    /// Two hosts at `leaf`, which has two links to `spine`.
    fn fabric() -> Fabric {
        let mut builder = FabricBuilder::new();
        let (a, b) = (builder.host("h0"), builder.host("h1"));
        let (leaf, spine) = (builder.switch("leaf", "leaf"), builder.switch("spine", "spine"));
        for (from, to) in [(a, leaf), (b, leaf), (leaf, spine), (leaf, spine)] {
            builder.connect(from, to, Rate::from_gbps(100), Time::from_us(1), Probability::ZERO);
        }
        builder.build().unwrap()
    }

    #[test]
    fn a_port_is_named_by_its_host_its_number_or_its_neighbour() {
        let fabric = fabric();
        let link = |text| Tap::find(&fabric, text).unwrap().link;
        assert_eq!(link("h1"), fabric.link(NodeId(1), PortIndex(0)));
        assert_eq!(link("leaf:1"), fabric.link(NodeId(2), PortIndex(1)));
        assert_eq!(link("leaf:h1"), link("leaf:1"));
        assert_eq!(link("h1:leaf"), link("h1"));
        assert_eq!(Tap::find(&fabric, "leaf:1").unwrap().stem(), "leaf-1");
    }

    #[test]
    fn unknown_ports_are_refused_with_the_nearest_name() {
        let fabric = fabric();
        let wrong = |text| Tap::find(&fabric, text).unwrap_err();
        assert_eq!(wrong("h2"), "there is no host or switch `h2`; did you mean `h0`?");
        assert_eq!(wrong("leef:0"), "there is no host or switch `leef`; did you mean `leaf`?");
        assert!(wrong("quux").ends_with("the nearest of 4 names are `h0`, `h1`, `leaf`"));
        assert!(wrong("leaf").contains("has 4 ports; choose one by its number, leaf:0 to leaf:3"));
        assert_eq!(wrong("leaf:4"), "`leaf` has no port 4; its ports are 0 to 3");
        assert_eq!(wrong("leaf:spone"), "no link of `leaf` leads to `spone`; did you mean `spine`?");
        assert_eq!(wrong("leaf:spine"), "2 links lead from `leaf` to `spine`; choose one of leaf:2, leaf:3");
        for noise in ["", ":", "leaf:", ":0", "leaf:-1", "leaf:99999999999999999999"] {
            assert!(Tap::find(&fabric, noise).is_err(), "{noise}");
        }
    }

    #[test]
    fn one_port_is_captured_once() {
        let fabric = fabric();
        let all =
            |names: &[&str]| find_all(&fabric, &names.iter().map(|n| n.to_string()).collect::<Vec<_>>());
        assert_eq!(all(&["h0", "leaf:0"]).unwrap().len(), 2, "the two ends of one link are two ports");
        let same = "`leaf:1` and `leaf:h1` are the same port".to_owned();
        assert_eq!(all(&["leaf:1", "leaf:h1"]).unwrap_err(), (1, same));
    }
}
