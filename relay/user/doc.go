// Package user holds who may use the admin API and the console: named users, their
// roles, and the sessions that they have after signing in.
//
// A user signs in with a password or through an OpenID Connect provider. Passwords are
// stored as Argon2id hashes, session tokens as SHA-256. A change of a user ends all of
// its sessions. The admin token is no user; it is for machines.
package user
