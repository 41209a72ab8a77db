// The question as a page may show it: as it was typed, or with its HTML or Markdown rendered.
(() => {
  const look = globalThis.__lookout;
  if (look.Question) return;

  const UNREAD = /<(script|style|template|title)\b[^>]*>[\s\S]*?<\/\1\s*>|<!--[\s\S]*?-->/gi; // pages do not show the content of these
  const TAG = /<\/?[a-z][\w-]*(\s[^<>]*)?\/?>/gi; // not <https://…>, which Markdown shows
  const NAMED = /&[a-z]{2,8}\d?;/gi; // nearly all are punctuation, which is not compared
  const NUMBERED = /&#(x[\da-f]{1,6}|\d{1,7});/gi;
  const codeOf = (given) => (/^x/i.test(given) ? Number.parseInt(given.slice(1), 16) : Number(given));
  const character = (_, given) => (codeOf(given) <= 0x10ffff ? String.fromCodePoint(codeOf(given)) : "");
  const unmarked = (text) => text.replace(UNREAD, "").replace(TAG, "").replace(NAMED, "").replace(NUMBERED, character);

  // Markup that consists of or holds letters or digits; other markup (**, #, -, |) is not compared anyway.
  const FENCE = /^[ \t]*(```|~~~)[^\n]*$/gm; // the language name after it is not shown
  const NUMBER = /^[ \t]*\d{1,9}[.)][ \t]+/gm;
  const TICK = /^([ \t]*[-*+][ \t]+)\[[ xX]\][ \t]/gm;
  const PICTURE = /!\[[^\]]*\]\([^()\s]*(\s+"[^"]*")?\)/g;
  const LINK = /\[([^\]]*)\]\([^()\s]*(\([^()\s]*\)[^()\s]*)*(\s+("[^"]*"|'[^']*'))?\)/g;
  const drawn = (text) => text.replace(FENCE, "").replace(TICK, "$1").replace(NUMBER, "").replace(PICTURE, "").replace(LINK, "$1");

  const TELLING = 8; // minimum number of letters; a longer text may contain a shorter form by chance

  // `forms` contain only letters and digits, the longest form first. Empty for a question without letters and digits.
  look.Question = class {
    constructor(question) {
      const text = question ?? "";
      const ways = [text, unmarked(text), drawn(text), unmarked(drawn(text)), text.replace(NUMBER, ""), text.replace(FENCE, "")];
      this.forms = [...new Set(ways.map(look.bare))].filter(Boolean).sort((a, b) => b.length - a.length);
      this.length = this.forms[0]?.length ?? 0;
      this.typed = look.bare(text);
    }

    get asked() {
      return this.forms.length > 0;
    }

    // Whether a text is exactly the question.
    is(bare) {
      return this.forms.includes(bare);
    }

    // The form of the question that a text contains, or null.
    in(bare) {
      return this.forms.find((form) => (form === this.typed || form.length >= TELLING) && bare.includes(form)) ?? null;
    }

    // Whether a text is exactly the beginning of the question.
    begins(bare) {
      return bare.length >= TELLING && this.forms.some((form) => form !== bare && form.startsWith(bare));
    }

    // Whether a text is exactly the question or a beginning of it. One or two words may match by chance.
    repeatedBy(bare) {
      return bare.length >= TELLING && (this.is(bare) || this.begins(bare));
    }

    // Whether a text is a part of the question.
    has(bare) {
      return this.forms.some((form) => form.includes(bare));
    }
  };
})();
