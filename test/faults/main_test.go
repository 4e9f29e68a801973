// Package faults holds that the system stays correct when its parts are killed: histories of what clients were told are
// checked for linearizability, and against what is stored in the end.
//
// The load under kills runs for a minute and a half; FAULTS_SECONDS makes it a soak of any length. FAULTS_DATA_DIR names a
// folder for the plane, which is kept with its logs.
package faults

import (
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/agentrooms/agentrooms/test/harness"
)

// plane is shared by the tests of this package. Each works in a namespace of its own, and leaves the plane well.
var plane *harness.Plane

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	flag.Parse()
	if testing.Short() { // all others need a control plane
		_ = flag.Set("test.run", "ModelTellsRightFromWrong")
		os.Exit(m.Run())
	}
	harness.Main(m, &plane, harness.Options{Bridges: 2, DataDir: os.Getenv("FAULTS_DATA_DIR")})
}

// duration of the load under kills: FAULTS_SECONDS for a longer soak.
func duration(t *testing.T) time.Duration {
	t.Helper()
	const usual = 90 * time.Second
	text := os.Getenv("FAULTS_SECONDS")
	if text == "" {
		return usual
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds <= 0 {
		t.Fatalf("FAULTS_SECONDS must be a positive number, not %q", text)
	}
	return time.Duration(seconds) * time.Second
}
