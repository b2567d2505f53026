// Package pki reads certificate signing requests (PKCS #10, RFC 2986) and issues
// certificates (X.509, RFC 5280) from a ledger's own authority.
//
// A request must prove that its sender has the private key. It refuses RSA
// below 2048 bits or with a public exponent below 65537, curves other than
// P-256, P-384 and P-521, signatures over MD5 or SHA-1, and other algorithms than
// RSA, ECDSA and Ed25519. Names and extensions of the request are ignored: the
// certificate names the token.
package pki
