// Package browser tests the web page in headless Chromium: with tattler run on a real control plane, and with tattler ui on
// journals that hold what no API server accepts.
//
// Every tab fails its test if a script fails, a dialog opens, the content security policy is violated, or a request leaves
// the server.
package browser
