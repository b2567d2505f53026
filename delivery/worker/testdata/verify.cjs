// Verifies requests with the reference library and prints "ok" or "refused" for each.
const { Webhook } = require("standardwebhooks");
const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(JSON.stringify(cases.map(({ secret, headers, body }) => {
  try {
    new Webhook(secret).verify(body, headers);
    return "ok";
  } catch (e) {
    // A body that is not valid JSON is read only after its signature has been verified.
    return e instanceof SyntaxError ? "ok" : "refused";
  }
})));
