# What somebody types who makes a node of a host with kubeadm, without a pause. The first word says
# which part: prepare, init, join. What the host needs lies in /root/stage.
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C
stage=/root/stage
# From 1.35 kubeadm takes hosts whose control groups are of version 1 for an error.
ignore=
[ -e /sys/fs/cgroup/cgroup.controllers ] || ignore=--ignore-preflight-errors=SystemVerification
case $1 in
prepare)
    pods=$2
    install -m 755 $stage/kubeadm $stage/kubelet $stage/kubectl /usr/bin/
    mkdir -p /etc/containerd /etc/systemd/system/kubelet.service.d /etc/cni/net.d /opt/cni/bin
    ln -sf /usr/lib/cni/* /opt/cni/bin/
    echo 1 >/proc/sys/net/ipv4/ip_forward
    cat >/etc/containerd/config.toml <<-END
	version = 2
	[plugins."io.containerd.grpc.v1.cri"]
	  sandbox_image = "registry.k8s.io/pause:3.10.1"
	  restrict_oom_score_adj = true
	[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
	  runtime_type = "io.containerd.runc.v2"
	[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
	  SystemdCgroup = true
	END
    cat >/etc/systemd/system/kubelet.service <<-END
	[Service]
	ExecStart=/usr/bin/kubelet
	Restart=always
	RestartSec=10
	[Install]
	WantedBy=multi-user.target
	END
    cat >/etc/systemd/system/kubelet.service.d/10-kubeadm.conf <<-END
	[Service]
	Environment="A=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
	EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
	ExecStart=
	ExecStart=/usr/bin/kubelet \$A --config=/var/lib/kubelet/config.yaml \$KUBELET_KUBEADM_ARGS
	END
    cat >/etc/cni/net.d/10-by-hand.conflist <<-END
	{"cniVersion": "1.0.0", "name": "by-hand", "plugins": [
	  {"type": "ptp", "ipMasq": true, "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pods"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
	  {"type": "portmap", "capabilities": {"portMappings": true}}]}
	END
    systemctl daemon-reload
    systemctl enable -q kubelet
    systemctl restart containerd
    for one in $stage/images/*.tar; do ctr -n k8s.io images import "$one" >/dev/null; done
    ;;
init)
    cat >/root/kubeadm.yaml <<-END
	apiVersion: kubeadm.k8s.io/v1beta4
	kind: InitConfiguration
	---
	apiVersion: kubeadm.k8s.io/v1beta4
	kind: ClusterConfiguration
	kubernetesVersion: $2
	networking: {podSubnet: 10.244.0.0/16}
	controllerManager: {extraArgs: [{name: allocate-node-cidrs, value: "false"}]}
	---
	apiVersion: kubelet.config.k8s.io/v1beta1
	kind: KubeletConfiguration
	cgroupDriver: systemd
	failSwapOn: false
	failCgroupV1: false
	evictionHard: {memory.available: 50Mi, nodefs.available: 100Mi}
	---
	apiVersion: kubeproxy.config.k8s.io/v1alpha1
	kind: KubeProxyConfiguration
	conntrack: {maxPerCore: 0}
	END
    kubeadm init --config /root/kubeadm.yaml $ignore >/root/kubeadm.log 2>&1 || { cat /root/kubeadm.log; exit 1; }
    kubeadm token create --print-join-command
    ;;
join)
    shift
    "$@" $ignore >/root/kubeadm.log 2>&1 || { cat /root/kubeadm.log; exit 1; }
    ;;
esac
