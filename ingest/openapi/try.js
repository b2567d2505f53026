// Sends requests from the page of an operation. Only a click on Send sends; the token stays in its field.
{
  const node = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  // The document is fetched when the first operation is tried.
  let fetched;
  const contract = () => (fetched ??= fetch("/openapi.json", { credentials: "omit" }).then((r) => {
    if (!r.ok) throw new Error(`/openapi.json: ${r.status}`);
    return r.json();
  }).catch((problem) => { fetched = undefined; throw problem; }));
  const resolve = (doc, it) => it.$ref ? it.$ref.slice(2).split("/").reduce((at, name) => at[name], doc) : it;

  const operation = (doc, id) => {
    for (const [path, item] of Object.entries(doc.paths)) {
      for (const [method, op] of Object.entries(item)) {
        if (op.operationId !== id) continue;
        const parameters = (op.parameters ?? []).map((p) => resolve(doc, p));
        return { path, method: method.toUpperCase(), parameters, bodies: op.requestBody?.content ?? {}, security: op.security, whole: item["x-wildcard"] };
      }
    }
  };

  // The header that carries the token, or nothing where no token is needed.
  const credential = (doc, of) => {
    const token = document.getElementById("token").value.trim();
    if (!token || !of.security?.length) return {};
    const schemes = of.security.flatMap(Object.keys).map((name) => doc.components.securitySchemes[name]);
    const own = schemes[0].in === "header" && schemes[0].name !== "Authorization";
    return own ? { [schemes[0].name]: token } : { Authorization: `Bearer ${token}` };
  };

  const input = (p) => {
    const field = node("input", { name: p.name, value: p.example ?? p.schema?.example ?? "", autocomplete: "off", spellcheck: false, placeholder: p.description ?? "" });
    field.dataset.in = p.in;
    return node("label", {}, `${p.name}${p.required ? " *" : ""}, ${p.in} `, field);
  };

  const bodyFields = (bodies) => {
    const kinds = Object.keys(bodies);
    if (kinds.length === 0) return [];
    const example = (kind) => {
      const shown = bodies[kind].example ?? "";
      return typeof shown === "string" ? shown : JSON.stringify(shown, null, 2);
    };
    const kind = node("select", { name: "content-type" }, ...kinds.map((k) => node("option", {}, k)));
    const text = node("textarea", { name: "body", rows: 8, spellcheck: false, value: example(kinds[0]) });
    kind.addEventListener("change", () => { text.value = example(kind.value); });
    return [node("label", {}, "Content-Type ", kind), node("label", {}, "Body ", text)];
  };

  // The request that the fields make; fields that are empty are left out.
  const request = (doc, of, form) => {
    const headers = credential(doc, of), query = new URLSearchParams();
    let path = of.path;
    for (const field of form.querySelectorAll("input")) {
      const value = field.value;
      if (field.dataset.in === "path") {
        if (!value) throw new Error(`${field.name} is required.`);
        path = path.replace(`{${field.name}}`, () => of.whole ? value.split("/").map(encodeURIComponent).join("/") : encodeURIComponent(value));
      } else if (value && field.dataset.in === "query") {
        query.append(field.name, value);
      } else if (value && field.dataset.in === "header") {
        headers[field.name] = value;
      }
    }
    const body = form.querySelector("textarea")?.value || undefined;
    if (body) headers["Content-Type"] = form.querySelector("select").value;
    return [path + (query.size ? "?" + query : ""), { method: of.method, headers, body, credentials: "omit", redirect: "manual", cache: "no-store", signal: AbortSignal.timeout(30000) }];
  };

  const pretty = (text) => {
    try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
  };

  const send = async (doc, of, form, answer) => {
    answer.replaceChildren("Sending …");
    try {
      const [target, options] = request(doc, of, form);
      const r = await fetch(target, options);
      if (r.type === "opaqueredirect") {
        answer.replaceChildren("The answer is a redirection, which a browser does not show.");
        return;
      }
      const text = await r.text();
      const headers = [...r.headers].map(([name, value]) => `${name}: ${value}`).join("\n");
      answer.replaceChildren(node("p", {}, `${of.method} ${target} `, node("b", {}, `${r.status} ${r.statusText}`)), node("pre", { textContent: headers }), node("pre", { textContent: pretty(text).slice(0, 200000) }));
    } catch (problem) {
      answer.replaceChildren(`Nothing was answered: ${problem.message}`);
    }
  };

  const show = async (button, id) => {
    const answer = node("div", { className: "answer" });
    answer.setAttribute("aria-live", "polite");
    const form = node("div", { className: "try" });
    button.replaceWith(form);
    try {
      const doc = await contract();
      const of = operation(doc, id);
      const go = node("button", { type: "button" }, `Send ${of.method}`);
      go.addEventListener("click", () => send(doc, of, form, answer));
      form.append(...of.parameters.map(input), ...bodyFields(of.bodies), go, answer);
    } catch (problem) {
      form.replaceWith(button);
      button.textContent = `Try it (not loaded: ${problem.message})`;
    }
  };

  for (const article of document.querySelectorAll("article")) {
    const button = node("button", { type: "button" }, "Try it");
    button.addEventListener("click", () => show(button, article.id));
    article.querySelector("summary").after(button);
  }
}
