//! What Envoy is given.

use super::*;
use expect_test::expect;
use std::net::Ipv4Addr;

fn web() -> Listener {
    Listener {
        role: "web".parse().unwrap(),
        protocol: Protocol::Tcp,
        port: 443,
        target_port: 30_443,
        targets: vec![Ipv4Addr::new(10, 9, 0, 2), Ipv4Addr::new(10, 9, 0, 3)],
        proxy_protocol: false,
        sticky: false,
    }
}

fn file(listener: Listener, path: &str) -> String {
    let balance = Balance {
        address: Ipv4Addr::new(10, 9, 0, 1),
        listeners: vec![listener],
    };
    let found = files(&balance).into_iter().find(|file| file.path == path);
    found.unwrap().text
}

#[test]
fn a_role_sends_connections_of_a_port_to_a_file_of_targets() {
    let filter = &listener(&web())["filter_chains"][0]["filters"][0]["typed_config"];
    expect![[r#"
        {
          "@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy",
          "backoff_options": {
            "base_interval": "0.2s",
            "max_interval": "0.5s"
          },
          "cluster": "web",
          "hash_policy": [
            {
              "source_ip": {}
            }
          ],
          "idle_timeout": "86400s",
          "max_connect_attempts": 3,
          "stat_prefix": "web"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(filter).unwrap());
    expect![[r#"
        {"version_info":"6704ba5a8114fcfd","resources":[{"@type":"type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment","cluster_name":"web","endpoints":[{"lb_endpoints":[
        {"endpoint":{"address":{"socket_address":{"address":"10.9.0.2","port_value":30443}}}},
        {"endpoint":{"address":{"socket_address":{"address":"10.9.0.3","port_value":30443}}}}
        ]}]}]}
    "#]]
    .assert_eq(&file(web(), "endpoints/web.json"));
}

#[test]
fn every_file_is_json_also_without_roles_and_targets() {
    let nobody = Listener {
        targets: Vec::new(),
        ..web()
    };
    for listeners in [vec![], vec![web()], vec![nobody]] {
        let balance = Balance {
            address: Ipv4Addr::new(10, 9, 0, 1),
            listeners,
        };
        for file in files(&balance) {
            let read: Value = serde_json::from_str(&file.text).unwrap();
            assert!(read.is_object(), "{}", file.path);
        }
    }
}

#[test]
fn whatever_is_changed_about_targets_leaves_the_listener_alone() {
    let changed = Listener {
        target_port: 30_444,
        targets: vec![Ipv4Addr::new(10, 9, 0, 4)],
        proxy_protocol: true,
        sticky: true,
        ..web()
    };
    let listeners = "listeners/all.json";
    assert_eq!(file(web(), listeners), file(changed, listeners));
}

#[test]
fn a_change_of_targets_changes_their_file_alone() {
    let fewer = Listener {
        targets: vec![Ipv4Addr::new(10, 9, 0, 2)],
        ..web()
    };
    let clusters = "clusters/all.json";
    assert_eq!(file(web(), clusters), file(fewer.clone(), clusters));
    let targets = "endpoints/web.json";
    assert_ne!(file(web(), targets), file(fewer, targets));
}

#[test]
fn datagrams_are_not_checked_and_connections_are() {
    let dns = Listener {
        protocol: Protocol::Udp,
        ..web()
    };
    assert!(cluster(&web())["health_checks"].is_array());
    assert!(cluster(&dns)["health_checks"].is_null());
}
