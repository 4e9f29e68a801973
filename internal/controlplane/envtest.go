package controlplane

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// minEnvtest is the oldest Kubernetes that Agent Rooms runs on: MutatingAdmissionPolicy is stable from there.
var minEnvtest = version.MustParseGeneric("1.36.0")

func defaultEnvtestDir() string {
	dir, err := envtest.SetupEnvtestDefaultBinaryAssetsDirectory()
	if err != nil {
		return ""
	}
	return dir
}

// newestEnvtest returns the newest download in setup-envtest's store that is new enough and has the program, or "".
func newestEnvtest(store, name string) string {
	entries, err := os.ReadDir(store)
	if err != nil {
		return ""
	}
	suffix := fmt.Sprintf("-%s-%s", runtime.GOOS, runtime.GOARCH)
	var best *version.Version
	var dir string
	for _, entry := range entries {
		text, ok := strings.CutSuffix(entry.Name(), suffix)
		if !ok {
			continue
		}
		v, err := version.ParseSemantic(text)
		if err != nil || v.LessThan(minEnvtest) || (best != nil && v.LessThan(best)) {
			continue
		}
		candidate := filepath.Join(store, entry.Name())
		if isExecutable(filepath.Join(candidate, name)) {
			best, dir = v, candidate
		}
	}
	return dir
}
