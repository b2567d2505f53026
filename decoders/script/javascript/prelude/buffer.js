// Buffer as Node.js has it, as far as codecs use it. A Buffer is a Uint8Array.
(function (global) {
  var digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

  function fromHex(s) {
    var out = [];
    for (var i = 0; i + 1 < s.length; i += 2) {
      var n = parseInt(s.substr(i, 2), 16);
      if (isNaN(n)) break;
      out.push(n);
    }
    return out;
  }

  function fromBase64(s) {
    var out = [], bits = 0, count = 0;
    for (var i = 0; i < s.length; i++) {
      var d = digits.indexOf(s[i] === '-' ? '+' : s[i] === '_' ? '/' : s[i]);
      if (d < 0) continue;
      bits = (bits << 6) | d;
      count += 6;
      if (count >= 8) {
        count -= 8;
        out.push((bits >> count) & 0xff);
      }
    }
    return out;
  }

  function toBase64(b) {
    var out = '';
    for (var i = 0; i < b.length; i += 3) {
      var n = (b[i] << 16) | ((b[i + 1] || 0) << 8) | (b[i + 2] || 0);
      out += digits[n >> 18] + digits[(n >> 12) & 63];
      out += i + 1 < b.length ? digits[(n >> 6) & 63] : '=';
      out += i + 2 < b.length ? digits[n & 63] : '=';
    }
    return out;
  }

  function fromText(s, mask) {
    var out = [];
    for (var i = 0; i < s.length; i++) out.push(s.charCodeAt(i) & mask);
    return out;
  }

  function fromUTF8(s) {
    var text = unescape(encodeURIComponent(s));
    return fromText(text, 0xff);
  }

  function toText(b, mask) {
    var out = '';
    for (var i = 0; i < b.length; i++) out += String.fromCharCode(b[i] & mask);
    return out;
  }

  function toUTF8(b) {
    var out = '';
    for (var i = 0; i < b.length;) {
      var c = b[i], more = c < 0x80 ? 0 : c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : -1;
      var point = more < 0 ? 0xfffd : more === 0 ? c : c & (0x3f >> more);
      for (var k = 1; k <= more; k++) {
        if ((b[i + k] & 0xc0) !== 0x80) { point = 0xfffd; more = k - 1; break; }
        point = (point << 6) | (b[i + k] & 0x3f);
      }
      out += point > 0x10ffff ? '\ufffd' : String.fromCodePoint(point);
      i += Math.max(more, 0) + 1;
    }
    return out;
  }

  function encode(s, encoding) {
    switch (String(encoding || 'utf8').toLowerCase()) {
      case 'hex': return fromHex(s);
      case 'base64': case 'base64url': return fromBase64(s);
      case 'ascii': case 'latin1': case 'binary': return fromText(s, 0xff);
      case 'utf8': case 'utf-8': return fromUTF8(s);
    }
    throw new TypeError('Unknown encoding: ' + encoding);
  }

  var construct = Reflect.construct;

  // Node.js still accepts its old forms: new Buffer(text, encoding), and Buffer(…) without new.
  function Buffer(value, encoding, length) {
    var args = typeof value === 'string' ? [encode(value, encoding)] : value && value.type === 'Buffer' ? [value.data] : arguments;
    return construct(Bytes, args, new.target || Buffer);
  }

  class Bytes extends Uint8Array {
    static from(value, encoding, length) {
      if (typeof value === 'string') value = encode(value, encoding);
      if (value instanceof ArrayBuffer) return new Buffer(value, encoding, length);
      if (value && value.type === 'Buffer') value = value.data;
      var out = new Buffer(value.length);
      for (var i = 0; i < value.length; i++) out[i] = value[i];
      return out;
    }
    static alloc(size, fill) { return fill === undefined ? new Buffer(size) : new Buffer(size).fill(fill); }
    static allocUnsafe(size) { return new Buffer(size); }
    static isBuffer(b) { return b instanceof Buffer; }
    static byteLength(s, encoding) { return typeof s === 'string' ? encode(s, encoding).length : s.byteLength; }
    static concat(list) {
      var all = [];
      for (var i = 0; i < list.length; i++) for (var k = 0; k < list[i].length; k++) all.push(list[i][k]);
      return Buffer.from(all);
    }
    slice(start, end) { return this.subarray(start, end); }
    equals(other) { return this.length === other.length && this.every(function (x, i) { return x === other[i]; }); }
    toJSON() { return { type: 'Buffer', data: Array.from(this) }; }
    write(text, offset, length, encoding) {
      var b = encode(text, typeof offset === 'string' ? offset : typeof length === 'string' ? length : encoding);
      for (var i = 0; i < b.length; i++) this[(offset | 0) + i] = b[i];
      return b.length;
    }
    toString(encoding, start, end) {
      var b = start === undefined && end === undefined ? this : this.subarray(start, end), out = '';
      switch (String(encoding || 'utf8').toLowerCase()) {
        case 'hex':
          for (var i = 0; i < b.length; i++) out += (b[i] < 16 ? '0' : '') + b[i].toString(16);
          return out;
        case 'ascii': return toText(b, 0x7f);
        case 'latin1': case 'binary': return toText(b, 0xff);
        case 'base64': return toBase64(b);
        case 'utf8': case 'utf-8': return toUTF8(b);
      }
      throw new TypeError('Unknown encoding: ' + encoding);
    }
    readUIntBE(offset, size) { return number(this, offset, size, false, false); }
    readUIntLE(offset, size) { return number(this, offset, size, true, false); }
    readIntBE(offset, size) { return number(this, offset, size, false, true); }
    readIntLE(offset, size) { return number(this, offset, size, true, true); }
  }
  Object.setPrototypeOf(Buffer, Bytes);
  Buffer.prototype = Bytes.prototype;
  Object.defineProperty(Buffer.prototype, 'constructor', { value: Buffer, writable: true, configurable: true });

  function check(b, offset, size) {
    if (offset < 0 || offset + size > b.length) {
      throw new RangeError('The value of "offset" is out of range. It must be >= 0 and <= ' + (b.length - size) + '. Received ' + offset);
    }
  }

  function number(b, offset, size, little, signed) {
    check(b, offset, size);
    var n = 0;
    for (var i = 0; i < size; i++) n = n * 256 + b[little ? offset + size - 1 - i : offset + i];
    var top = Math.pow(2, 8 * size);
    return signed && n >= top / 2 ? n - top : n;
  }

  var view = function (b) { return new DataView(b.buffer, b.byteOffset, b.byteLength); };
  var words = [['Int8', 1], ['Uint8', 1], ['Int16', 2], ['Uint16', 2], ['Int32', 4], ['Uint32', 4], ['Float32', 4], ['Float64', 8]];
  words.forEach(function (w) {
    var kind = w[0], size = w[1];
    var name = kind.replace('Uint', 'UInt').replace('Float32', 'Float').replace('Float64', 'Double');
    (size === 1 ? [['', true]] : [['BE', false], ['LE', true]]).forEach(function (order) {
      var read = function (offset) { check(this, offset | 0, size); return view(this)['get' + kind](offset | 0, order[1]); };
      var write = function (value, offset) {
        check(this, offset | 0, size);
        view(this)['set' + kind](offset | 0, value, order[1]);
        return (offset | 0) + size;
      };
      Buffer.prototype['read' + name + order[0]] = read;
      Buffer.prototype['write' + name + order[0]] = write;
      if (name.indexOf('UInt') === 0) {
        Buffer.prototype['readUint' + name.slice(4) + order[0]] = read;
        Buffer.prototype['writeUint' + name.slice(4) + order[0]] = write;
      }
    });
  });

  global.Buffer = Buffer;
})(this);
