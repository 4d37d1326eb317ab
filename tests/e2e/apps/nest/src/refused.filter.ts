import { ArgumentsHost, Catch, ExceptionFilter } from '@nestjs/common';
import { Response } from 'express';
import { RefusedError } from './planets/planets.service';

@Catch(RefusedError)
export class RefusedFilter implements ExceptionFilter {
  catch(error: RefusedError, host: ArgumentsHost) {
    const response = host.switchToHttp().getResponse<Response>();
    response.status(409).set('X-Refused', 'yes').json({ refused: error.message, at: host.switchToHttp().getRequest().url });
  }
}
