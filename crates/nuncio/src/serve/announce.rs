//! What a server says on stdout once it can be called. Programs read these lines.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use nuncio_protocol::AgentId;

/// The lines: one for each agent, the default agent's card, a command to try, and `ready` last.
pub(crate) fn lines(base: &str, agents: &[AgentId], with_keys: bool) -> String {
    let key = if with_keys { " --api-key <key>" } else { "" };
    let agents: String = agents
        .iter()
        .map(|agent| format!("agent {agent} {base}/agents/{agent}\n"))
        .collect();
    format!(
        "{agents}card {base}/.well-known/agent-card.json\n\
         try nuncio send --agent-card {base}{key} \"hello\"\n\
         ready {base}\n"
    )
}

/// The address as somebody on this machine would call it.
pub(crate) fn base_url(mut address: SocketAddr, tls: bool) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    let scheme = if tls { "https" } else { "http" };
    format!("{scheme}://{address}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_stable() {
        let base = base_url("0.0.0.0:80".parse().unwrap(), false);
        let said = lines(&base, &["echo".into()], false);
        assert_eq!(
            said,
            "agent echo http://127.0.0.1:80/agents/echo\n\
             card http://127.0.0.1:80/.well-known/agent-card.json\n\
             try nuncio send --agent-card http://127.0.0.1:80 \"hello\"\n\
             ready http://127.0.0.1:80\n"
        );
        let base = base_url("[::1]:8080".parse().unwrap(), true);
        assert!(lines(&base, &[], true).ends_with("ready https://[::1]:8080\n"));
    }
}
