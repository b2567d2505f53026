// Package console serves the operator's web console: one page, its script and
// its style sheet, embedded in the program.
//
// The page is open, as /docs is; it holds nothing and asks for the admin token,
// which the browser's tab keeps and sends to the admin API and nowhere else. It
// shows, explains and replays by that API alone, so there is nothing here that
// curl cannot do. Its Content-Security-Policy refuses every other host, inline
// scripts and styles, frames and forms; the script makes text nodes of what
// comes from outside and never markup.
package console
