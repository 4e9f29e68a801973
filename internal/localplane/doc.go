// Package localplane runs a Kubernetes API on this machine: etcd, kube-apiserver and kube-controller-manager, on the
// loopback address, with everything they keep in one folder.
//
// It is not a cluster: there are no nodes and no pods. It is the whole API with RBAC, admission policies, garbage
// collection and service account tokens, which is what Agent Rooms is made of.
//
// A plane may be killed at any moment and started again on the same folder. etcd syncs every write, the ports and the
// certificate authority stay the same, so kubeconfigs and service account tokens given out before go on working.
package localplane
