def f_isSubDomain(domain: str, url: str) -> int:
    return int(url == domain or url.endswith("." + domain))
