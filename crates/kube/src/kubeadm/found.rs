//! Where a node finds the API: its one name leads there, and who asks elsewhere is led along.

use super::{ITEMS_MAX, hosts_lines};
use hosts::program::{Program, Report};
use hosts::recipe;
use hosts::recipe::item::Item;
use model::cluster::{Machine, Role};
use model::kubernetes::{API_PORT, api_name};
use model::name::Name;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The fact that names pods.
const STALE: &str = "stale";

/// Writes down where the API is, and has the kubelet ask there. Tells which pods were started when
/// it was elsewhere: those in the network of their host have a copy of its names.
pub fn found(cluster: &Name, machine: &Machine, api: &[Ipv4Addr]) -> Program {
    let mut items = vec![hosts_lines(cluster, api)];
    match machine.role {
        // They ask themselves, and always did.
        Role::Control => {}
        Role::Compute | Role::Balancer => items.push(asks(api)),
    }
    items.push(stale(cluster));
    recipe::render(&items, "where the API is", ITEMS_MAX)
}

/// The pods that were started when the API was elsewhere.
pub fn stale_pods(report: &Report) -> BTreeSet<String> {
    let told = report.fact(STALE).unwrap_or_default();
    told.split_whitespace().map(str::to_owned).collect()
}

/// The kubelet keeps a connection for as long as it holds. Where it leads elsewhere it is cut, so
/// that the kubelet looks up the name again, which it remembers for some seconds; where that cannot
/// be done the kubelet is started again.
fn asks(api: &[Ipv4Addr]) -> Item {
    let here: Vec<_> = api
        .iter()
        .map(|at| at.to_string().replace('.', "\\."))
        .collect();
    let here = here.join("|");
    let elsewhere = format!(
        "ss -tnpH state established '( dport = :{API_PORT} )' | grep -F '\"kubelet\"' | \
         grep -vE ' ({here}):{API_PORT} '"
    );
    Item::Command {
        name: "kubelet asks the API where it is".to_owned(),
        unless: format!("[ -z \"$({elsewhere})\" ]"),
        run: format!(
            "for try in 1 2 3 4 5 6 7 8 9 10 11 12; do\n\
             peers=$({elsewhere} | awk '{{ print $4 }}')\n\
             [ -n \"$peers\" ] || exit 0\n\
             for peer in $peers; do ss -K -tnH dst \"$peer\" >/dev/null 2>&1; done\n\
             sleep 1\n\
             done\n\
             systemctl restart kubelet"
        ),
    }
}

fn stale(cluster: &Name) -> Item {
    let name = api_name(cluster);
    Item::Told {
        key: STALE.to_owned(),
        print: format!(
            "now=$(grep -F ' {name}' /etc/hosts); for copy in /var/lib/kubelet/pods/*/etc-hosts; do \
             [ -e \"$copy\" ] || continue; [ \"$(grep -F ' {name}' \"$copy\")\" = \"$now\" ] && continue; \
             copy=${{copy%/etc-hosts}}; printf '%s ' \"${{copy##*/}}\"; done"
        ),
    }
}
