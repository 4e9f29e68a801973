// Package config holds the manifests that a cluster needs, so that the rooms binary can apply them without a checkout.
package config

import "embed"

// Files are the manifests: crd/bases, rbac, policy and samples. The names and the namespace stand in the files
// themselves; kustomization.yaml files are among them and are not manifests.
//
//go:embed crd/bases/*.yaml rbac/*.yaml policy/*.yaml samples/*.yaml
var Files embed.FS
