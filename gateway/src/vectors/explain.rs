//! Why a vector's signature does not fit: what would have to be otherwise for it to fit.
//!
//! For the author of a plugin, who has the secret: other forms of the key, hash functions, spellings of the
//! signature, shapes of the message and of the body are tried, all with one another. What fits with the fewest
//! changes is told first. Never used on deliveries.

use std::borrow::Cow;

use super::{Presets, Vector, delivery, setup};
use crate::crypto::{self, Hash, Key, KeyForm, Mac, Piece};
use crate::encoding::Encoding;
use crate::plugin::{Asked, Said, WasmPlugin};

/// How many explanations are told.
const MOST: usize = 3;

/// A way to take something, and what was changed for it; nothing where it is taken as the plugin takes it.
type Way<T> = (Option<String>, T);

/// What would make a signature of this vector fit, best first; a sentence where nothing was found.
pub fn explain(plugin: &WasmPlugin, vector: &Vector, presets: &Presets) -> Vec<String> {
    let mut notes = Vec::new();
    let manifest = crate::plugin::Plugin::manifest(plugin);
    let setup = setup(manifest, vector, presets.find(vector), &mut notes);
    let Ok(setup) = setup else {
        return Vec::new();
    };
    let asked = plugin.rehearse(&delivery(vector).into(), &setup.into());
    let asked = asked.map(|(_, asked)| asked).unwrap_or_default();
    let macs: Vec<_> = asked
        .iter()
        .filter_map(|asked| match asked {
            Asked::Mac {
                secret,
                mac,
                message,
                text,
                encoding,
                ..
            } => {
                let form = manifest
                    .secret(secret)
                    .map(|spec| spec.form)
                    .unwrap_or_default();
                Some(Try {
                    mac: *mac,
                    message,
                    text,
                    encoding: *encoding,
                    form,
                })
            }
            Asked::Token { .. } | Asked::PublicKey(_) | Asked::Jwt(_) => None,
        })
        .collect();
    if macs.is_empty() {
        return vec![
            "no MAC was asked for: it was refused before, or is verified otherwise".into(),
        ];
    }
    let mut found: Vec<_> = macs.iter().flat_map(|mac| mac.fitting(vector)).collect();
    found.sort_by_key(|changes| (changes.len(), changes.join(", ").len()));
    found.dedup();
    if found.is_empty() {
        return vec![
            "no other key form, hash, spelling or body that was tried fits: is it this secret, and this body \
             to the byte?"
                .into(),
        ];
    }
    let told = found.into_iter().take(MOST);
    told.map(|changes| format!("it would fit {}", changes.join(", ")))
        .collect()
}

/// A MAC that a plugin asked for.
struct Try<'a> {
    mac: Mac,
    message: &'a [Said],
    text: &'a [u8],
    encoding: Encoding,
    form: KeyForm,
}

impl Try<'_> {
    /// The changes with which the signature fits, for each way in which it does.
    fn fitting(&self, vector: &Vector) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        let (signatures, macs) = (self.signatures(), self.macs());
        let (bodies, shapes) = (bodies(&vector.body), self.shapes());
        for (key_changed, key) in vector.secrets.iter().flat_map(|value| self.keys(value)) {
            for (mac_changed, mac) in &macs {
                for (body_changed, body) in &bodies {
                    for (shape_changed, shape) in &shapes {
                        let pieces: Vec<_> = shape.iter().map(|said| piece(said, body)).collect();
                        let computed = crypto::sign(*mac, &key, &pieces);
                        let fits = signatures.iter().filter(|(_, bytes)| *bytes == computed);
                        found.extend(fits.map(|(signature_changed, _)| {
                            let all = [
                                &key_changed,
                                mac_changed,
                                signature_changed,
                                shape_changed,
                                body_changed,
                            ];
                            all.into_iter().flatten().cloned().collect()
                        }));
                    }
                }
            }
        }
        // Without a change it fits already: the refusal has another reason.
        found.retain(|changes: &Vec<String>| !changes.is_empty());
        found
    }

    fn keys(&self, value: &str) -> Vec<Way<Key>> {
        let forms = [
            (KeyForm::Raw, "raw"),
            (KeyForm::Hex, "hex"),
            (KeyForm::Base64, "base64"),
            (KeyForm::Whsec, "whsec"),
            (KeyForm::Sha1, "sha1"),
            (KeyForm::Sha256, "sha256"),
        ];
        let way = |(form, name): (KeyForm, &str)| {
            let key = Key::decode(form, value.as_bytes(), true).ok()?;
            let changed = (form != self.form).then(|| format!("with the key's form \"{name}\""));
            Some((changed, key))
        };
        forms.into_iter().filter_map(way).collect()
    }

    fn macs(&self) -> Vec<Way<Mac>> {
        let hashes = [
            (Hash::Sha256, "hmac-sha256"),
            (Hash::Sha1, "hmac-sha1"),
            (Hash::Sha512, "hmac-sha512"),
            (Hash::Sha384, "hmac-sha384"),
        ];
        let others = hashes
            .into_iter()
            .filter(|(hash, _)| Mac::Hmac(*hash) != self.mac);
        let others = others.map(|(hash, name)| (Some(format!("as {name}")), Mac::Hmac(hash)));
        // A plain digest's message names the secret, which an HMAC's does not.
        let is_hmac = matches!(self.mac, Mac::Hmac(_));
        std::iter::once((None, self.mac))
            .chain(others.filter(|_| is_hmac))
            .collect()
    }

    fn signatures(&self) -> Vec<Way<Vec<u8>>> {
        let encodings = [
            (Encoding::Hex, "hexadecimal"),
            (Encoding::Base64, "base64"),
            (Encoding::Base64Url, "URL-safe base64"),
        ];
        let own = self.encoding.decode(self.text).map(|bytes| (None, bytes));
        let text = String::from_utf8_lossy(self.text);
        let parts = text.split([',', ';', ' ']).map(str::trim);
        let parts = parts.flat_map(|part| {
            let behind = part.split_once('=').map(|(name, rest)| (Some(name), rest));
            [Some((None, part)), behind].into_iter().flatten()
        });
        let others = parts.flat_map(|(name, part)| {
            encodings.iter().filter_map(move |(encoding, called)| {
                let bytes = encoding
                    .decode(part.as_bytes())
                    .filter(|bytes| bytes.len() >= 16)?;
                let behind = name.map_or(String::new(), |name| format!(" behind \"{name}=\""));
                Some((
                    Some(format!("with the signature as {called}{behind}")),
                    bytes,
                ))
            })
        });
        let own_bytes = own.as_ref().map(|(_, bytes)| bytes.clone());
        let others = others.filter(|(_, bytes)| Some(bytes) != own_bytes.as_ref());
        own.into_iter().chain(others).collect()
    }

    fn shapes(&self) -> Vec<Way<Vec<Said>>> {
        let mut shapes = vec![(None, self.message.to_vec())];
        let rest: Vec<_> = self
            .message
            .iter()
            .filter(|said| **said != Said::Body)
            .cloned()
            .collect();
        if !rest.is_empty() {
            shapes.push((Some("over the body alone".into()), vec![Said::Body]));
            let behind = [vec![Said::Body], rest.clone()].concat();
            shapes.push((Some("with the body first".into()), behind));
            let before = [rest.clone(), vec![Said::Body]].concat();
            shapes.push((Some("with the body last".into()), before));
            shapes.push((Some("without the body".into()), rest));
        }
        let mut distinct = Vec::<Way<Vec<Said>>>::new();
        for shape in shapes {
            if !distinct.iter().any(|(_, known)| *known == shape.1) {
                distinct.push(shape);
            }
        }
        distinct
    }
}

fn piece<'a>(said: &'a Said, body: &'a [u8]) -> Piece<'a> {
    match said {
        Said::Bytes(bytes) => Piece::Bytes(bytes),
        Said::Body => Piece::Bytes(body),
        Said::Secret => Piece::ThisKey,
    }
}

/// The body as it is, and as careless tools leave it.
fn bodies(body: &[u8]) -> Vec<Way<Cow<'_, [u8]>>> {
    let mut all: Vec<Way<Cow<'_, [u8]>>> = vec![(None, body.into())];
    let mut add = |what: &str, other: Vec<u8>| {
        if !all.iter().any(|(_, known)| **known == *other) {
            all.push((Some(what.to_owned()), other.into()));
        }
    };
    add(
        "without the body's last line break",
        body.trim_ascii_end().to_vec(),
    );
    add("with a line break behind the body", [body, b"\n"].concat());
    let text = String::from_utf8_lossy(body);
    add(
        "with CR LF as LF in the body",
        text.replace("\r\n", "\n").into_bytes(),
    );
    add(
        "with LF as CR LF in the body",
        text.replace('\n', "\r\n").into_bytes(),
    );
    add(
        "with the body's JSON without spaces",
        without_spaces(&text).into_bytes(),
    );
    add(
        "with the body's letters beyond ASCII as \\uXXXX",
        escaped(&text).into_bytes(),
    );
    add(
        "with / as \\/ in the body",
        text.replace('/', "\\/").into_bytes(),
    );
    let decoded = percent_encoding::percent_decode(body).collect();
    add("with the body's %XX decoded", decoded);
    add("with an empty body", Vec::new());
    all
}

/// JSON without the white space between its tokens.
fn without_spaces(json: &str) -> String {
    let (mut inside, mut escaped) = (false, false);
    let keep = |c: &char| {
        let kept = inside || !c.is_ascii_whitespace();
        inside ^= *c == '"' && !escaped;
        escaped = inside && *c == '\\' && !escaped;
        kept
    };
    json.chars().filter(keep).collect()
}

fn escaped(text: &str) -> String {
    let mut units = [0; 2];
    text.chars()
        .map(|c| match c.is_ascii() {
            true => c.to_string(),
            false => c
                .encode_utf16(&mut units)
                .iter()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_loses_the_spaces_between_its_tokens_alone() {
        let json = "{ \"a b\" : [1, 2],\n \"c\\\"d e\": \"\\\\\" }";
        assert_eq!(
            without_spaces(json),
            "{\"a b\":[1,2],\"c\\\"d e\":\"\\\\\"}"
        );
        assert_eq!(escaped("aé😀"), "a\\u00e9\\ud83d\\ude00");
    }

    fn tried(form: KeyForm, text: &str, message: &[Said], vector: &str) -> Vec<String> {
        let vector: Vector = serde_json::from_str(vector).unwrap();
        let own = Try {
            mac: Mac::Hmac(Hash::Sha256),
            message,
            text: text.as_bytes(),
            encoding: Encoding::Hex,
            form,
        };
        let mut found = own.fitting(&vector);
        found.sort_by_key(Vec::len);
        found.first().cloned().unwrap_or_default()
    }

    fn mac(hash: Hash, key: &[u8], message: &str) -> Vec<u8> {
        let key = Key::decode(KeyForm::Raw, key, true).unwrap();
        crypto::sign(Mac::Hmac(hash), &key, &[Piece::Bytes(message.as_bytes())])
    }

    #[test]
    fn what_is_otherwise_is_told_be_it_one_thing_or_several() {
        let hex = |bytes: &[u8]| String::from_utf8(Encoding::Hex.encode(bytes)).unwrap();
        let vector = r#"{"provider":"p","scheme":"s","expect":"valid","body":"{ \"a\": 1 }\n",
            "secrets":["30313233343536373839616263646566"]}"#;
        let (raw, decoded) = (
            b"30313233343536373839616263646566".as_slice(),
            b"0123456789abcdef".as_slice(),
        );
        let (body, alone) = ("{ \"a\": 1 }\n", [Said::Body]);
        let text = hex(&mac(Hash::Sha256, decoded, body));
        assert_eq!(
            tried(KeyForm::Raw, &text, &alone, vector),
            ["with the key's form \"hex\""]
        );
        let text = hex(&mac(Hash::Sha1, raw, body));
        assert_eq!(tried(KeyForm::Raw, &text, &alone, vector), ["as hmac-sha1"]);
        let signature = mac(Hash::Sha256, raw, "{\"a\":1}");
        let text = format!(
            "sha256={}",
            String::from_utf8(Encoding::Base64.encode(&signature)).unwrap()
        );
        assert_eq!(
            tried(KeyForm::Raw, &text, &alone, vector),
            [
                "with the signature as base64 behind \"sha256=\"",
                "with the body's JSON without spaces"
            ]
        );
        let message = [Said::Bytes(b"17.".to_vec()), Said::Body];
        let text = hex(&mac(Hash::Sha256, raw, body));
        assert_eq!(
            tried(KeyForm::Raw, &text, &message, vector),
            ["over the body alone"]
        );
        let text = hex(&mac(Hash::Sha256, b"another", body));
        assert!(tried(KeyForm::Raw, &text, &alone, vector).is_empty());
    }
}
