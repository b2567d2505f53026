// Package admin is the operator's surface: the inventory, what arrived and what
// became of it, deliveries and their attempts, replays, health and metrics.
//
// Everything under /admin takes the admin token. /healthz, /readyz and /metrics
// take none and tell nothing about anybody's traffic.
package admin
