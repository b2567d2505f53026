package e2e

// ApplyResult is what an apply says it did.
type ApplyResult struct {
	Data struct {
		Accounts []struct {
			ID   int64
			Name string
		}
		Removed, Kept []string
	}
}

// Apply puts an inventory and returns what changed.
func (g *Gateway) Apply(query, document string) ApplyResult {
	g.T.Helper()
	var done ApplyResult
	g.Admin().Put("/admin/inventory"+query, document).Decode(g.T, &done)
	return done
}
