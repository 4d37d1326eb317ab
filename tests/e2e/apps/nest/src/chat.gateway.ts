import { ConnectedSocket, MessageBody, OnGatewayConnection, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { WebSocket } from 'ws';

@WebSocketGateway({ path: '/chat' })
export class ChatGateway implements OnGatewayConnection {
  handleConnection(socket: WebSocket) {
    socket.send(JSON.stringify({ event: 'welcome', data: 'good day' }));
  }

  @SubscribeMessage('shout')
  shout(@MessageBody() text: string, @ConnectedSocket() socket: WebSocket) {
    return { event: 'shouted', data: `${text.toUpperCase()}!`, open: socket.readyState === 1 };
  }
}
