// Package console serves the operator's web console: one page, its modules and
// its style sheets, embedded in the program and served from the folder web.
//
// The page requires no credentials, like /docs; it holds no data. A reader signs in as a user or
// with the admin token, which the browser's tab stores. The console is a client of the API: it
// uses the admin API for operations on several accounts, and acts as an account by X-Account for
// all other operations, so that curl can do everything that the console does. The page's
// Content-Security-Policy refuses every other host, inline scripts and styles, frames and forms.
// The modules convert data from outside to text nodes, never to markup.
//
// # Add a view
//
//  1. Write web/views/NAME.js, which exports show(main, params, signal): main is
//     the empty element to fill, params has the parameters of the address, and signal ends
//     when the reader leaves. The router displays an error that show throws.
//  2. Register it in the table of web/app.js: name, title, group, load, and needs. A reader who
//     may not use the operation needs does not see the view in the navigation. The view's address
//     is #NAME, and link("NAME", params, text) of core/address.js links to it.
//  3. Add the operations that it uses to the table of core/api.js, and request with
//     call("operationId", {path, query, body, as, signal}); as is the account to act as.
//  4. Most views are a listing({…}) (core/list.js: columns that sort and are exported,
//     filters in the address, rows that open; its filters are in core/filters.js).
//     core/form.js has editor({…}) for a form that saves and displays refusals next to its
//     inputs, editIn for such a form in a dialog, pick for a list of records by name, asking for
//     a form with an answer below it, during for buttons that act, and ask for confirmations.
//     core/dom.js has h, table, pairs, when and state. Further helpers are section for a part
//     that loads by itself (core/section.js), chart for lines over time (core/chart.js, by
//     uPlot), and may for the operations of the reader's role (core/session.js).
//  5. Add it to the views of cmd/penstock/e2e/console/views_test.go, where axe checks it.
//
// Nothing has to be built: the program serves every file of web as it is
// (docs/adr/0027). Tests compare api.js and filters.js with the contract, and refuse markup,
// inline styles, circles of imports and long lines. web/uplot-1.6.32 is uPlot as published,
// with its licence.
package console
