// Puts the time zone of Date to UTC, wherever the codec runs.
(function (global) {
  var Inner = global.Date, proto = Inner.prototype, utc = Inner.UTC, parse = Inner.parse;
  var exec = RegExp.prototype.exec, call = Function.prototype.call.bind(Function.prototype.call);
  var local = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(:\d\d(\.\d+)?)?)$/;
  var define = function (name, value) {
    Object.defineProperty(proto, name, { value: value, writable: true, configurable: true });
  };
  ['Date', 'Day', 'FullYear', 'Hours', 'Milliseconds', 'Minutes', 'Month', 'Seconds'].forEach(function (name) {
    define('get' + name, proto['getUTC' + name]);
    if (name !== 'Day') define('set' + name, proto['setUTC' + name]);
  });
  define('getTimezoneOffset', function getTimezoneOffset() { return 0; });
  define('toString', proto.toUTCString);
  define('toLocaleString', proto.toISOString);
  define('toDateString', function () { return call(proto.toISOString, this).slice(0, 10); });
  define('toTimeString', function () { return call(proto.toISOString, this).slice(11, 19); });
  define('toLocaleDateString', proto.toDateString);
  define('toLocaleTimeString', proto.toTimeString);
  var read = function (text) {
    var parts = call(exec, local, text);
    return parse(parts ? parts[1] + 'T' + parts[2] + 'Z' : text);
  };
  // Date keeps its own prototype, so that dates made before are dates too.
  function Date(year, month, day, hours, minutes, seconds, ms) {
    if (new.target === undefined) return new Inner().toString();
    var made;
    switch (arguments.length) {
      case 0: made = new Inner(); break;
      case 1: made = new Inner(typeof year === 'string' ? read(year) : year); break;
      default:
        made = new Inner(utc(year, month, day === undefined ? 1 : day, hours || 0, minutes || 0, seconds || 0, ms || 0));
    }
    if (new.target !== Date) Object.setPrototypeOf(made, new.target.prototype);
    return made;
  }
  Date.prototype = proto;
  Object.defineProperty(proto, 'constructor', { value: Date, writable: true, configurable: true });
  Date.now = Inner.now;
  Date.UTC = utc;
  Date.parse = function (text) { return read(String(text)); };
  Object.defineProperty(global, 'Date', { value: Date, writable: true, configurable: true });
})(this);
