// Package console serves the operator's web console: one page, its modules and
// its style sheets, embedded in the program and served from the folder web.
//
// The page is open, as /docs is; it holds nothing and asks for the admin token,
// which the browser's tab keeps and sends to the admin API and nowhere else. It
// shows, explains and replays by that API alone, so there is nothing here that
// curl cannot do. Its Content-Security-Policy refuses every other host, inline
// scripts and styles, frames and forms; the modules make text nodes of what
// comes from outside and never markup.
//
// # Add a view
//
//  1. Write web/views/NAME.js, which exports show(main, params, signal): main is
//     the empty element to fill, params what the address holds, signal ends when
//     the reader leaves. An error that it throws is shown.
//  2. Register it in the table of web/app.js: name, title, group, load, and needs, the
//     operation without which a reader is not offered the view. Its address is
//     #NAME, and link("NAME", params, text) of core/router.js refers to it.
//  3. Add the operations it asks for to the table of core/api.js, and ask with
//     call("operationId", {path, query, body, signal}).
//  4. Most views are a listing({…}) (core/list.js: filters, pages by cursor, rows
//     that open; its filters stand in core/filters.js) or an asking({…})
//     (core/form.js: a form with an answer below). For the rest: h, table, pairs,
//     stamp, state (core/dom.js), during for buttons that act and ask for
//     confirmations (core/form.js), section for a part that loads by itself
//     (core/section.js), poll to ask again while somebody looks (core/live.js), chart
//     for lines over time (core/chart.js, by uPlot), may for what the reader's role
//     may use (core/session.js).
//  5. Add it to the views of cmd/penstock/e2e/console/views_test.go, which has axe look
//     at it.
//
// Nothing has to be built: the program serves every file of web as it is. Tests
// compare api.js and filters.js with the contract, and refuse markup and inline
// styles. web/uplot-1.6.32 is uPlot as published, with its licence.
package console
