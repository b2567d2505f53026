// Takes away what makes code of text and what no guard can hold.
(function (global) {
  var refuse = function () {
    throw new TypeError('code made of text is not supported');
  };
  [function () {}, function* () {}, async function () {}].forEach(function (f) {
    Object.defineProperty(Object.getPrototypeOf(f), 'constructor', { value: refuse });
  });
  refuse.prototype = Function.prototype;
  global.Function = global.eval = refuse;
  ['Proxy', 'Reflect', 'BigInt', 'BigInt64Array', 'BigUint64Array', 'WeakRef'].forEach(function (name) {
    delete global[name];
  });
  ['getBigInt64', 'getBigUint64', 'setBigInt64', 'setBigUint64'].forEach(function (name) {
    delete DataView.prototype[name];
  });
})(this);
