//! What Envoy reads: one bootstrap that never changes while it runs, and files that are swapped
//! under it, one for listeners, one for clusters and one per role for targets.
//!
//! A listener depends on its role, protocol and port alone; targets, their port and how they are
//! chosen are elsewhere. So a change of targets moves one small file and touches no listener.
//! Every file carries as its version a fingerprint of what is in it, which Envoy tells as a
//! statistic once it has the file in use.
//!
//! Entries of a file stand on lines of their own: the program on the host puts old and new ones
//! together while it moves from one to the other.

use super::DIRECTORY;
use model::balancer::{ADMIN_PORT, Balance, HEALTH_PORT, Listener, Protocol};
use model::host::Fingerprint;
use serde_json::{Value, json};

/// How many connections there may be, of all roles together and to the targets of each.
const CONNECTIONS: u32 = 65_535;

/// The longest datagram that is passed on: what fits into the largest frames in use.
const DATAGRAM_BYTES: u32 = 9000;

/// What the names of Envoy's own messages begin with.
const TYPE: &str = "type.googleapis.com/envoy";

/// A file for Envoy.
pub(super) struct File {
    /// Its path, below [`DIRECTORY`].
    pub path: String,
    /// The statistic that tells which version is in use; a bootstrap has none.
    pub statistic: Option<String>,
    /// What is in it.
    pub text: String,
    /// The fingerprint of what is in it.
    pub version: Fingerprint,
}

impl File {
    /// Puts a file together from entries that are JSON already.
    fn of_entries(
        path: String,
        statistic: &str,
        open: &str,
        entries: &[String],
        shut: &str,
    ) -> Self {
        let body = format!("{open}\n{}\n]{shut}\n", entries.join(",\n"));
        let version = Fingerprint::of_text(&body);
        Self {
            path,
            statistic: Some(format!("{statistic}.version_text")),
            text: format!(r#"{{"version_info":"{version}","resources":[{body}"#),
            version,
        }
    }

    /// The line by which Envoy tells that it has this file in use.
    pub(super) fn in_use(&self) -> Option<String> {
        let statistic = self.statistic.as_ref()?;
        Some(format!(r#"{statistic}: "{}""#, self.version))
    }
}

/// Everything Envoy reads, in the order in which it is put there.
pub(super) fn files(balance: &Balance) -> Vec<File> {
    let mut files = vec![bootstrap(balance)];
    files.extend(balance.listeners.iter().map(endpoints));
    files.push(File::of_entries(
        "clusters/all.json".to_owned(),
        "cluster_manager.cds",
        "",
        &named(balance, cluster),
        "}",
    ));
    files.push(File::of_entries(
        "listeners/all.json".to_owned(),
        "listener_manager.lds",
        "",
        &named(balance, listener),
        "}",
    ));
    files
}

/// One entry per role. The name comes first so that a shell program finds it.
fn named(balance: &Balance, render: fn(&Listener) -> Value) -> Vec<String> {
    let entry = |listener: &Listener| {
        format!(
            r#"{{"@type":"{TYPE}.service.discovery.v3.Resource","name":"{}","resource":{}}}"#,
            listener.role,
            render(listener)
        )
    };
    balance.listeners.iter().map(entry).collect()
}

/// What Envoy is started with: where to look for the rest, and what is there whatever is asked.
///
/// Its name holds its fingerprint: another bootstrap means another command line, and only that
/// makes a restart necessary.
fn bootstrap(balance: &Balance) -> File {
    let source = |kind: &str| {
        json!({
            "resource_api_version": "V3",
            "path_config_source": {
                "path": format!("{DIRECTORY}/{kind}/all.json"),
                "watched_directory": {"path": format!("{DIRECTORY}/{kind}")},
            },
        })
    };
    let admin = json!({"pipe": {"path": format!("{DIRECTORY}/admin.sock"), "mode": 0o600}});
    let text = json!({
        "node": {"id": balance.address, "cluster": "slipway"},
        // What this page can do besides telling figures is for root on the machine alone.
        "admin": {"address": admin, "ignore_global_conn_limit": true},
        "dynamic_resources": {"cds_config": source("clusters"), "lds_config": source("listeners")},
        "overload_manager": {"resource_monitors": [{
            "name": "envoy.resource_monitors.global_downstream_max_connections",
            "typed_config": {
                "@type": format!("{TYPE}.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig"),
                "max_active_downstream_connections": CONNECTIONS,
            },
        }]},
        "static_resources": {
            "clusters": [{
                "name": "slipway_admin",
                "type": "STATIC",
                "load_assignment": {"cluster_name": "slipway_admin", "endpoints": [
                    {"lb_endpoints": [{"endpoint": {"address": admin}}]},
                ]},
            }],
            "listeners": [figures(balance), health()],
        },
    })
    .to_string();
    let version = Fingerprint::of_text(&text);
    File {
        path: format!("bootstrap-{version}.json"),
        statistic: None,
        text: text + "\n",
        version,
    }
}

/// Figures for the mesh, without the parts of the admin page that change something.
///
/// Roles are served before the mesh is up, so its address may come later (`freebind`).
fn figures(balance: &Balance) -> Value {
    json!({
        "name": "slipway_figures",
        "ignore_global_conn_limit": true,
        "freebind": true,
        "address": {"socket_address": {"address": balance.address, "port_value": ADMIN_PORT}},
        "filter_chains": [{"filters": [{
            "name": "http",
            "typed_config": {
                "@type": format!("{TYPE}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"),
                "stat_prefix": "slipway_figures",
                "http_filters": [{
                    "name": "router",
                    "typed_config": {"@type": format!("{TYPE}.extensions.filters.http.router.v3.Router")},
                }],
                "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{
                    "match": {
                        "safe_regex": {"regex": "/(ready|clusters|listeners|stats|stats/prometheus)"},
                        "headers": [{"name": ":method", "string_match": {"exact": "GET"}}],
                    },
                    "route": {"cluster": "slipway_admin"},
                }]}]},
            },
        }]}],
    })
}

/// A port that accepts connections and says a word.
fn health() -> Value {
    json!({
        "name": "slipway_health",
        "ignore_global_conn_limit": true,
        "address": {"socket_address": {"address": "0.0.0.0", "port_value": HEALTH_PORT}},
        "filter_chains": [{"filters": [{
            "name": "direct",
            "typed_config": {
                "@type": format!("{TYPE}.extensions.filters.network.direct_response.v3.Config"),
                "response": {"inline_string": "ok\n"},
            },
        }]}],
    })
}

/// A port, by role, protocol and number alone.
fn listener(listener: &Listener) -> Value {
    match listener.protocol {
        Protocol::Tcp => tcp(listener),
        Protocol::Udp => udp(listener),
    }
}

/// A port for connections.
///
/// A target that refuses a connection is out at once ([`watch`]); the pause
/// before the next attempt is there so that all of Envoy's threads know it by then.
fn tcp(listener: &Listener) -> Value {
    json!({
        "@type": format!("{TYPE}.config.listener.v3.Listener"),
        "name": listener.role,
        "address": {"socket_address": {"address": "0.0.0.0", "port_value": listener.port}},
        "tcp_keepalive": {"keepalive_time": 60, "keepalive_interval": 10, "keepalive_probes": 6},
        "filter_chains": [{"filters": [{
            "name": "tcp",
            "typed_config": {
                "@type": format!("{TYPE}.extensions.filters.network.tcp_proxy.v3.TcpProxy"),
                "stat_prefix": listener.role,
                "cluster": listener.role,
                "idle_timeout": "86400s",
                "max_connect_attempts": 3,
                "backoff_options": {"base_interval": "0.2s", "max_interval": "0.5s"},
                "hash_policy": [{"source_ip": {}}],
            },
        }]}],
    })
}

/// A port for datagrams.
fn udp(listener: &Listener) -> Value {
    json!({
        "@type": format!("{TYPE}.config.listener.v3.Listener"),
        "name": listener.role,
        "address": {"socket_address": {
            "protocol": "UDP", "address": "0.0.0.0", "port_value": listener.port,
        }},
        "udp_listener_config": {"downstream_socket_config": {"max_rx_datagram_size": DATAGRAM_BYTES}},
        "listener_filters": [{
            "name": "udp",
            "typed_config": {
                "@type": format!("{TYPE}.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig"),
                "stat_prefix": listener.role,
                "cluster": listener.role,
                "upstream_socket_config": {"max_rx_datagram_size": DATAGRAM_BYTES},
                "hash_policies": [{"source_ip": true}],
            },
        }],
    })
}

/// How targets are chosen, checked and dialled; which they are is in the role's own file.
fn cluster(listener: &Listener) -> Value {
    let role = &listener.role;
    let mut cluster = json!({
        "@type": format!("{TYPE}.config.cluster.v3.Cluster"),
        "name": role,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": {
            "resource_api_version": "V3",
            "path_config_source": {"path": format!("{DIRECTORY}/{}", endpoints_path(listener))},
        }},
        // One segment may be lost; who does not answer the second is passed over for another.
        "connect_timeout": "2s",
        // Where a target goes, Maglev moves hardly a caller of another one; a ring of hashes
        // moves every tenth.
        "lb_policy": if listener.sticky { "MAGLEV" } else { "LEAST_REQUEST" },
        "circuit_breakers": {"thresholds": [{
            "max_connections": CONNECTIONS,
            "max_pending_requests": CONNECTIONS,
            "max_requests": CONNECTIONS,
            "max_retries": CONNECTIONS,
        }]},
        "common_lb_config": {
            // A target that does not answer is no better when all others do not either.
            "healthy_panic_threshold": {"value": 0},
            // Envoy would gather changes of health for a second and dial the dead meanwhile.
            "update_merge_window": "0s",
            "ignore_new_hosts_until_first_hc": true,
        },
        // Without it a target that was taken away but still answers would get new connections.
        "ignore_health_on_host_removal": true,
    });
    match listener.protocol {
        Protocol::Tcp => {
            watch(&mut cluster);
            if listener.is_api() {
                question(&mut cluster);
            }
        }
        // Whether a target of datagrams lives cannot be asked: all of them count as healthy.
        Protocol::Udp => {}
    }
    if listener.announces_caller() {
        cluster["transport_socket"] = announcing();
    }
    cluster
}

/// Has the targets of connections watched.
///
/// New connections go only to targets that were reached last time. Connections that exist are
/// left alone when a check fails: they end when the target ends them or when its machine has
/// been silent for 25 seconds, acknowledging neither data (`TCP_USER_TIMEOUT`) nor keepalives.
///
/// A target that cannot be dialled is passed over until the next checks must have found out whether
/// it lives; never all of them, lest a moment in which none could be dialled becomes many seconds.
fn watch(cluster: &mut Value) {
    cluster["health_checks"] = json!([{
        "tcp_health_check": {},
        "timeout": "2s",
        "interval": "2s",
        "no_traffic_interval": "2s",
        "interval_jitter": "0.5s",
        "unhealthy_threshold": 2,
        "healthy_threshold": 1,
    }]);
    cluster["outlier_detection"] = json!({
        "split_external_local_origin_errors": true,
        "consecutive_local_origin_failure": 1,
        "enforcing_consecutive_local_origin_failure": 100,
        "enforcing_local_origin_success_rate": 0,
        "enforcing_success_rate": 0,
        "enforcing_consecutive_5xx": 0,
        "enforcing_consecutive_gateway_failure": 0,
        "max_ejection_percent": 50,
        "interval": "1s",
        "base_ejection_time": "5s",
        "max_ejection_time": "5s",
    });
    cluster["close_connections_on_host_health_failure"] = json!(false);
    cluster["upstream_connection_options"] = json!({
        "tcp_keepalive": {"keepalive_time": 10, "keepalive_interval": 5, "keepalive_probes": 3},
    });
    cluster["upstream_bind_config"] = json!({"socket_options": [{
        "description": "TCP_USER_TIMEOUT",
        "level": 6,
        "name": 18,
        "int_value": 25_000,
        "state": "STATE_PREBIND",
    }]});
}

/// Has the targets of connections asked whether they are ready, as API servers can be.
///
/// One that starts, ends or has lost its etcd accepts connections and answers nothing useful. It is
/// passed over from its first such answer on, and whoever is connected to it is sent away: kubelets
/// keep one connection for everything, and with such a server they would not renew their leases until
/// their nodes are taken for dead. Only the question is put by TLS: what callers send is passed on as
/// it comes, and whoever answers proves nothing by it and is told nothing.
fn question(cluster: &mut Value) {
    let by_tls = json!({"by_tls": true});
    cluster["transport_socket_matches"] = json!([{
        "name": "by_tls",
        "match": by_tls,
        "transport_socket": {
            "name": "envoy.transport_sockets.tls",
            "typed_config": {
                "@type": format!("{TYPE}.extensions.transport_sockets.tls.v3.UpstreamTlsContext"),
                // Envoy would speak nothing newer than 1.2, which some forbid.
                "common_tls_context": {"tls_params": {
                    "tls_minimum_protocol_version": "TLSv1_2",
                    "tls_maximum_protocol_version": "TLSv1_3",
                }},
            },
        },
    }]);
    cluster["close_connections_on_host_health_failure"] = json!(true);
    // When none says that it is ready, one may answer all the same, or forbid strangers to ask.
    cluster["common_lb_config"]["healthy_panic_threshold"] = json!({"value": 1});
    let check = &mut cluster["health_checks"][0];
    if let Some(check) = check.as_object_mut() {
        check.remove("tcp_health_check");
    }
    check["http_health_check"] = json!({"host": "slipway", "path": "/readyz"});
    check["transport_socket_match_criteria"] = by_tls;
}

/// The PROXY protocol towards targets, version 2.
fn announcing() -> Value {
    json!({
        "name": "envoy.transport_sockets.upstream_proxy_protocol",
        "typed_config": {
            "@type": format!("{TYPE}.extensions.transport_sockets.proxy_protocol.v3.ProxyProtocolUpstreamTransport"),
            "config": {"version": "V2"},
            "transport_socket": {
                "name": "envoy.transport_sockets.raw_buffer",
                "typed_config": {"@type": format!("{TYPE}.extensions.transport_sockets.raw_buffer.v3.RawBuffer")},
            },
        },
    })
}

/// Where the targets of a role are.
fn endpoints(listener: &Listener) -> File {
    let entry = |target| {
        format!(
            r#"{{"endpoint":{{"address":{{"socket_address":{{"address":"{target}","port_value":{}}}}}}}}}"#,
            listener.target_port
        )
    };
    let entries: Vec<_> = listener.targets.iter().map(entry).collect();
    let open = format!(
        r#"{{"@type":"{TYPE}.config.endpoint.v3.ClusterLoadAssignment","cluster_name":"{}","endpoints":[{{"lb_endpoints":["#,
        listener.role
    );
    File::of_entries(
        endpoints_path(listener),
        &format!("cluster.{}", listener.role),
        &open,
        &entries,
        "}]}]}",
    )
}

/// The file of a role's targets.
fn endpoints_path(listener: &Listener) -> String {
    format!("endpoints/{}.json", listener.role)
}

#[cfg(test)]
mod tests;
