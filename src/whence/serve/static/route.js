// Where the viewer is: all of it is in the address, so that it can be sent to others.
//
//   #/view/reach?as=graph&search=a&epoch=12&ask=why&fact=reach("a", "b")

export function read() {
  const [path, query] = location.hash.replace(/^#/, "").split("?", 2);
  const [page = "", name = ""] = path.replace(/^\//, "").split("/").map(decode);
  const parameters = new URLSearchParams(query || "");
  const found = { page, name, where: parameters.getAll("where") };
  for (const [key, value] of parameters) if (key !== "where") found[key] = value;
  return found;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    return text;
  }
}

export function write(place) {
  const { page, name, where = [], ...rest } = place;
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(rest)) {
    if (value !== undefined && value !== null && value !== "") parameters.set(key, value);
  }
  for (const each of where) parameters.append("where", each);
  const query = parameters.toString();
  return `#/${page}${name ? `/${encodeURIComponent(name)}` : ""}${query ? `?${query}` : ""}`;
}

export const go = (place) => {
  const hash = write(place);
  if (hash !== location.hash) location.hash = hash;
};

// The same place with something else about it.
export const change = (some) => go({ ...read(), ...some });
export const linkTo = (some) => write({ ...read(), ...some });
