// Package testenv gives integration tests an API server: one for each test package, started by the first test that asks
// for it, with the kinds and the roles of Agent Rooms in it and a namespace for each test.
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		env := testenv.Get(t)
//		namespace := env.Namespace(t)
//		…
//	}
//
// The binaries are found by KUBEBUILDER_ASSETS. With -short the tests that ask are skipped. There is no controller manager:
// what is owned is not collected, and a namespace that is deleted stays.
package testenv
