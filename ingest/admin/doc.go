// Package admin is the operator's API: the inventory, events and their outcomes,
// deliveries and their attempts, replays, health and metrics.
//
// Operations under /admin require the admin token or a session of a user whose role
// may use the operation; signing in (POST /admin/session) and the redirects of OpenID
// Connect (/admin/oidc) require neither. /healthz, /readyz and /metrics require no
// credentials and show nothing about a single account.
package admin
