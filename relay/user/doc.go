// Package user provides the users of the admin API and the console, their roles and their
// sessions.
//
// A user signs in with a password or through an OpenID Connect provider. Passwords are stored as
// Argon2id hashes, session tokens as SHA-256. A change of a user ends all of the user's sessions:
// the transaction deletes the sessions and increments the version of the user. A session that
// begins at the same time has the old version and is not valid. The admin token, which is for
// machines, is not a user.
package user
