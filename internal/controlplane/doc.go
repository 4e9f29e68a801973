// Package controlplane finds the three programs that a Kubernetes API needs to run on one machine: etcd, kube-apiserver
// and kube-controller-manager.
//
// Each one is looked for on its own, in this order:
//
//  1. the folder named by KUBEBUILDER_ASSETS;
//  2. the newest suitable download of setup-envtest (which never has kube-controller-manager);
//  3. our own cache, which is filled by building the program from its Go module.
//
// The build needs the Go toolchain and takes about ten minutes once on two cores. Its module file is a copy of
// hack/controlplane's, embedded so that the bare rooms binary can build too. Nothing is ever downloaded except by the Go
// toolchain.
package controlplane
