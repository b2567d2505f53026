// Package pki reads certificate signing requests (PKCS #10, RFC 2986) and issues
// certificates (X.509, RFC 5280) from a ledger's own authority.
//
// A request must be signed with the private key. The package refuses RSA keys below 2048 or
// above 8192 bits or with a public exponent below 65537, curves other than P-256, P-384 and
// P-521, signatures with MD5 or SHA-1, and algorithms other than RSA, ECDSA and Ed25519. It
// ignores the names and extensions of a request: the certificate names the token.
package pki
