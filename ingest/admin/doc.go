// Package admin provides the admin API for operators: the inventory, events, deliveries,
// replays, records of all accounts, health and metrics.
//
// Operations under /admin require the admin token or a session of a user whose role
// may use the operation; signing in (POST /admin/session) and the redirects of OpenID
// Connect (/admin/oidc) require neither. /healthz, /readyz and /metrics require no
// credentials.
package admin
