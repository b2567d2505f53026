// Package user provides the users of the admin API and the console, their roles, and the
// sessions that they have after they signed in.
//
// A user signs in with a password or through an OpenID Connect provider. Passwords are
// stored as Argon2id hashes, session tokens as SHA-256. A change of a user ends all of
// its sessions: a session names the version of its user, and the transaction that deletes
// the sessions increments the version, so that a session which begins at the same time
// does not outlive the change. The admin token is not a user; it is for machines.
package user
