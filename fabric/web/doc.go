// Package web shows a view.Source in a browser: a page that is part of the
// program and loads nothing from elsewhere, and the data that it draws.
//
//	/              the page
//	/api/layout    the view.Layout in force, as JSON
//	/api/samples   a stream of view.Sample, as Server-Sent Events
//
// The stream (WHATWG HTML, "Server-sent events") carries events of two names:
// "layout", first and whenever another run begins, with a view.Layout, and
// "sample" with a view.Sample; the data of both is one line of JSON. Its
// parameter every, such as ?every=1s, asks for fewer samples. A curl -N shows
// it. Fields are added to both types, but neither renamed nor removed.
//
// Of a record (NewRecord) there is no stream, but any instant:
//
//	/api/at?t=12.304s&span=1s&n=60   n samples (up to 1000) of the time span before t, as a JSON list
//	/at/12.304s/NODE/...             the API of the daemon of a node, as it was then (only calls that list or get)
//
// A viewer that is slow gets fewer samples, one that takes none for a while is
// sent away; neither is waited for.
package web
