package app

import (
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/oidc"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay/user"
)

// providerOf returns the OpenID Connect provider; nil if none is configured.
func providerOf(c config.Config) admin.Provider {
	if c.OIDC.Issuer == "" {
		return nil
	}
	return oidc.New(oidc.Options{
		Issuer: c.OIDC.Issuer, ClientID: c.OIDC.ClientID, ClientSecret: c.OIDC.ClientSecret, RedirectURL: c.PublicURL + "/admin/oidc/callback",
		Scopes: c.OIDC.Scopes, NameClaim: c.OIDC.NameClaim, RoleClaim: c.OIDC.RoleClaim, AccountClaim: c.OIDC.AccountClaim,
		Roles: map[user.Role][]string{user.Admin: c.OIDC.Admin, user.Operator: c.OIDC.Operator, user.Viewer: c.OIDC.Viewer},
	})
}
