// Package console serves the operator's web console: one page, its modules and
// its style sheets, embedded in the program and served from the folder web.
//
// The page is open, as /docs is; it holds no data. A reader signs in as a user or with the
// admin token, which the browser's tab keeps. The console is a client of the API: it uses
// the admin API for what spans accounts, and acts as an account by X-Account for the rest,
// so curl can do whatever the console does. Its Content-Security-Policy refuses every other
// host, inline scripts and styles, frames and forms; the modules make text nodes of what
// comes from outside and never markup.
//
// # Add a view
//
//  1. Write web/views/NAME.js, which exports show(main, params, signal): main is
//     the empty element to fill, params what the address holds, signal ends when
//     the reader leaves. An error that it throws is shown.
//  2. Register it in the table of web/app.js: name, title, group, load, and needs, the
//     operation without which a reader is not offered the view. Its address is
//     #NAME, and link("NAME", params, text) of core/address.js refers to it.
//  3. Add the operations that it uses to the table of core/api.js, and request with
//     call("operationId", {path, query, body, as, signal}); as is the account to act as.
//  4. Most views are a listing({…}) (core/list.js: columns that sort and are exported,
//     filters in the address, rows that open; its filters stand in core/filters.js).
//     editor({…}) is a form that saves and shows refusals next to its inputs, editIn the
//     same in a dialog, pick a list of records by name, asking a form with an answer below
//     it (core/form.js). For the rest: h, table, pairs, when, state (core/dom.js), during
//     for buttons that act, ask for confirmations (core/form.js), section for a part that
//     loads by itself (core/section.js), chart for lines over time (core/chart.js, by
//     uPlot), may for operations of the reader's role (core/session.js).
//  5. Add it to the views of cmd/penstock/e2e/console/views_test.go, where axe checks it.
//
// Nothing has to be built: the program serves every file of web as it is
// (docs/adr/0027). Tests compare api.js and filters.js with the contract, and refuse markup,
// inline styles, circles of imports and long lines. web/uplot-1.6.32 is uPlot as published,
// with its licence.
package console
