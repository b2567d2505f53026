// Package admin is the operator's API: the inventory, events and their outcomes,
// deliveries and their attempts, replays, health and metrics.
//
// Everything under /admin requires the admin token. /healthz, /readyz and /metrics
// require none and show nothing about accounts' traffic.
package admin
