// Package e2e is the harness of the end-to-end tests: it starts gateways in this process
// or in processes of their own, on embedded back ends or on real servers, and has the
// clients, peers and fixtures that the folders below it share.
//
// Each folder tests one subject. Its TestMain calls Main, which lets the test binary act
// as the program, and its TestGateway runs the suites of the subject on every site.
package e2e

import "testing"

// Suite is a test that runs on every site.
type Suite struct {
	Name string
	Run  func(*testing.T, *Site)
}

// RunSuites runs suites in parallel on the embedded back ends, and again on real servers
// that the suites share.
func RunSuites(t *testing.T, suites []Suite) {
	t.Helper()
	OnEverySite(t, func(t *testing.T, s *Site) {
		for _, suite := range suites {
			t.Run(suite.Name, func(t *testing.T) {
				t.Parallel()
				suite.Run(t, s)
			})
		}
	})
}
