// Package pki reads certificate signing requests (PKCS #10, RFC 2986) and issues
// certificates (X.509, RFC 5280) from a ledger's own authority.
//
// A request must prove that its sender has the private key. It refuses RSA
// below 2048 bits or with a public exponent below 65537, curves other than
// P-256, P-384 and P-521, signatures over MD5 or SHA-1, and whatever else is no
// RSA, ECDSA or Ed25519. Names and extensions that a request asks for are not
// taken over: the certificate says what the ledger knows, which token it is for.
package pki
